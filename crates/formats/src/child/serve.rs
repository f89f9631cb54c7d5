//! The child's side.

use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::limits::limit_this_process;
use super::protocol::{Answer, Hello, Request, receive, send};
use crate::extract::extract;
use crate::item::{ExtractError, Item};

/// Longest first message: the limits.
const LONGEST_HELLO: usize = 1 << 20;
/// Longest head of a request: names of files.
const LONGEST_REQUEST: usize = 1 << 20;

/// Takes files apart, as the parent asks on standard input, until that ends. The process limits itself first, for good: call
/// this in a program that does nothing else.
///
/// # Errors
/// If standard input or output fails, which is so when the parent has gone.
pub fn serve() -> io::Result<()> {
    serve_with(None)
}

/// What takes a file apart in place of the formats of this crate.
pub type Extractor<'e> = &'e mut dyn FnMut(&Request, Vec<u8>, &mut dyn FnMut(Item));

/// As [`serve`], with something else to take files apart: tests use it to misbehave.
///
/// # Errors
/// As [`serve`].
pub fn serve_with(mut extractor: Option<Extractor<'_>>) -> io::Result<()> {
    let mut input = io::stdin().lock();
    let mut output = io::BufWriter::with_capacity(64 << 10, io::stdout().lock());
    let Some(Hello { limits, password }) = receive(&mut input, LONGEST_HELLO)? else { return Ok(()) };
    // What a parser says when it panics is reported; it need not be printed as well.
    std::panic::set_hook(Box::new(|_| {}));
    let unlimited = limit_this_process(&limits);
    send(&mut output, &Answer::Ready { unlimited })?;
    output.flush()?;
    while let Some(request) = receive::<Request>(&mut input, LONGEST_REQUEST)? {
        let mut bytes = Vec::new();
        input.by_ref().take(request.length).read_to_end(&mut bytes)?;
        let mut broken = None;
        let mut sink = |item: Item| {
            if broken.is_none() {
                broken = send(&mut output, &Answer::from(item)).and_then(|()| output.flush()).err();
            }
        };
        let worked = catch_unwind(AssertUnwindSafe(|| match &mut extractor {
            Some(extractor) => extractor(&request, bytes, &mut sink),
            None => extract(&request.source, &request.name, bytes, &limits, password.as_deref(), &mut sink),
        }));
        if let Err(panic) = worked {
            sink(Item::Error(ExtractError::Died { path: request.source.clone(), how: panicked(&*panic) }.into()));
        }
        if let Some(error) = broken {
            return Err(error);
        }
        send(&mut output, &Answer::Done)?;
        output.flush()?;
    }
    Ok(())
}

/// What a panic says.
pub(crate) fn panicked(panic: &(dyn std::any::Any + Send)) -> String {
    let words = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("gave up on a fault of its own ({})", words.unwrap_or("unknown"))
}
