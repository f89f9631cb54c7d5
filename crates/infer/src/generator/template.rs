//! The chat template of a model, run as it stands in the file.
//!
//! Templates are Jinja programs written for Python; the functions that real ones call are provided. Everybody's words pass
//! through the template as data: a control token written in them is replaced by a private character before the template
//! runs and put back as plain text afterwards (F27), so nobody can open or close a turn by writing.

use anchorite_core::{Message, Prompt, Speaker};
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Error, ErrorKind, Value, context};

use super::vocabulary::Vocabulary;

/// Used when a file has no template: ChatML, the most common form.
const CHATML: &str = "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
const NAME: &str = "chat";

/// A compiled template.
pub(crate) struct ChatTemplate {
    environment: Environment<'static>,
}

impl ChatTemplate {
    /// Compiles `source`, or ChatML if there is none.
    pub(crate) fn new(source: Option<&str>) -> Result<Self, String> {
        let mut environment = Environment::new();
        // Chat templates are written for blocks that leave no line of their own behind.
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.map_err(|error| explain(&error))?);
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function("raise_exception", |message: String| -> Result<Value, Error> {
            Err(Error::new(ErrorKind::InvalidOperation, message))
        });
        environment.add_function("strftime_now", |format: String| -> Result<String, Error> {
            jiff::fmt::strtime::format(&format, &jiff::ZonedDateTime::now())
                .map_err(|error| Error::new(ErrorKind::InvalidOperation, error.to_string()))
        });
        environment
            .add_template_owned(NAME, source.unwrap_or(CHATML).to_owned())
            .map_err(|error| explain(&error))?;
        Ok(Self { environment })
    }

    /// Tokens of a conversation, ready for the model to reply.
    pub(crate) fn encode(&self, prompt: &Prompt, vocabulary: &Vocabulary) -> Result<Vec<u32>, String> {
        let shield = Shield::new(&prompt.messages, &vocabulary.control);
        let messages: Vec<Message> = prompt
            .messages
            .iter()
            .map(|message| Message { speaker: message.speaker, content: shield.cover(&message.content) })
            .collect();
        let text = self.render(&messages, vocabulary)?;
        let mut tokens = Vec::new();
        for piece in shield.uncover(&text) {
            match piece {
                Piece::Template(text) => tokens.extend(vocabulary.encode_template(text)?),
                Piece::Words(text) => tokens.extend(vocabulary.encode_plain(text)?),
            }
        }
        if let Some(begin) = vocabulary.begin.filter(|begin| tokens.first() != Some(begin)) {
            tokens.insert(0, begin);
        }
        tokens.extend(vocabulary.encode_plain(&prompt.reply_prefix)?);
        Ok(tokens)
    }

    fn render(&self, messages: &[Message], vocabulary: &Vocabulary) -> Result<String, String> {
        let template = self.environment.get_template(NAME).map_err(|error| explain(&error))?;
        let render = |messages: &[Message]| {
            template.render(context! {
                messages => messages.iter().map(value).collect::<Vec<_>>(),
                add_generation_prompt => true,
                enable_thinking => false,
                bos_token => vocabulary.begin_text.as_str(),
                eos_token => vocabulary.end_text.as_str(),
            })
        };
        match render(messages) {
            Ok(text) => Ok(text),
            Err(error) => {
                // Some templates refuse a system message; its words then go before the first of the user.
                let Some(folded) = fold_system(messages) else { return Err(explain(&error)) };
                render(&folded).map_err(|_| explain(&error))
            }
        }
    }
}

/// A message as templates expect it.
fn value(message: &Message) -> Value {
    let role = match message.speaker {
        Speaker::System => "system",
        Speaker::User => "user",
        Speaker::Assistant => "assistant",
    };
    context! { role => role, content => message.content.as_str() }
}

fn fold_system(messages: &[Message]) -> Option<Vec<Message>> {
    let [first, second, rest @ ..] = messages else { return None };
    if first.speaker != Speaker::System {
        return None;
    }
    let joined = Message { speaker: second.speaker, content: format!("{}\n\n{}", first.content, second.content) };
    Some(std::iter::once(joined).chain(rest.iter().cloned()).collect())
}

fn explain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text
}

/// Stand-ins for the control tokens that occur in somebody's words.
struct Shield<'a> {
    covers: Vec<(char, &'a str)>,
}

enum Piece<'a> {
    Template(&'a str),
    Words(&'a str),
}

impl<'a> Shield<'a> {
    fn new(messages: &[Message], control: &'a [String]) -> Self {
        let mut free = ('\u{F0000}'..='\u{FFFFD}').filter(|c| !messages.iter().any(|m| m.content.contains(*c)));
        let covers = control
            .iter()
            .filter(|token| !token.is_empty() && messages.iter().any(|m| m.content.contains(token.as_str())))
            .filter_map(|token| free.next().map(|cover| (cover, token.as_str())))
            .collect();
        Self { covers }
    }

    fn cover(&self, content: &str) -> String {
        self.covers.iter().fold(content.to_owned(), |text, (cover, token)| {
            text.replace(token, cover.encode_utf8(&mut [0; 4]))
        })
    }

    fn uncover<'t>(&self, text: &'t str) -> Vec<Piece<'t>>
    where
        'a: 't,
    {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((at, cover, token)) = rest
            .char_indices()
            .find_map(|(at, c)| self.covers.iter().find(|(cover, _)| *cover == c).map(|(cover, token)| (at, cover, *token)))
        {
            if at > 0 {
                pieces.push(Piece::Template(&rest[..at]));
            }
            pieces.push(Piece::Words(token));
            rest = &rest[at + cover.len_utf8()..];
        }
        if !rest.is_empty() {
            pieces.push(Piece::Template(rest));
        }
        pieces
    }
}
