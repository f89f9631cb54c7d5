//! Logits to text: what is chosen, what of it is passed on, and when it ends.

use std::ops::ControlFlow;

use anchorite_core::{Budget, FinishReason, GenerateOptions, InferenceError};

use super::LocalGenerator;
use super::constraint::Guide;
use super::sampler::Sampler;
use super::stream::TextStream;

/// Writes one text.
pub(super) struct Writer<'a> {
    generator: &'a LocalGenerator,
    sampler: Sampler,
    stream: TextStream,
    sink: &'a mut dyn FnMut(&str) -> ControlFlow<()>,
    finish: FinishReason,
    guide: Option<Guide<'a>>,
    /// Tokens that may still be written.
    left: usize,
}

impl<'a> Writer<'a> {
    /// Writes at most `most` tokens.
    pub(super) fn new(
        generator: &'a LocalGenerator,
        options: &GenerateOptions,
        most: usize,
        sink: &'a mut dyn FnMut(&str) -> ControlFlow<()>,
    ) -> Result<Self, InferenceError> {
        let guide = match &options.constraint {
            Some(constraint) => {
                let guide = generator.grammars().and_then(|grammars| grammars.guide(constraint, most));
                Some(guide.map_err(|problem| InferenceError::Constraint { problem })?)
            }
            None => None,
        };
        Ok(Self {
            generator,
            guide,
            left: most,
            sampler: Sampler::new(options),
            stream: TextStream::new(&options.stop),
            sink,
            finish: FinishReason::Length,
        })
    }

    /// Chooses the token after `tokens` from its `logits`, adds it to them and passes its text on. `None` ends the text.
    pub(super) fn next(
        &mut self,
        logits: &mut [f32],
        tokens: &mut Vec<u32>,
        budget: &Budget,
    ) -> Result<Option<u32>, InferenceError> {
        let Some(next) = self.choose(logits, tokens)? else {
            self.finish = FinishReason::EndOfTurn;
            return Ok(None);
        };
        tokens.push(next);
        self.left -= 1;
        budget.note_written(1);
        let piece = self.stream.push(next, &self.generator.vocabulary).map_err(|error| self.generator.fault(error))?;
        if !piece.is_empty() && (self.sink)(piece).is_break() {
            self.finish = FinishReason::Cancelled;
            return Ok(None);
        }
        if self.stream.stopped() {
            self.finish = FinishReason::Stop;
            return Ok(None);
        }
        Ok(Some(next))
    }

    /// The next token; `None` where the model, or the grammar, ends the text.
    fn choose(&mut self, logits: &mut [f32], tokens: &[u32]) -> Result<Option<u32>, InferenceError> {
        let Some(guide) = &mut self.guide else {
            if self.left == 0 {
                return Ok(None);
            }
            let next = self.sampler.next(logits, tokens).ok_or_else(|| self.generator.not_a_number())?;
            return Ok((!self.generator.vocabulary.end.contains(&next)).then_some(next));
        };
        if logits.iter().any(|x| x.is_nan()) {
            return Err(self.generator.not_a_number());
        }
        let next = guide.next(logits, self.left, |logits| self.sampler.next(logits, tokens));
        next.map_err(|problem| InferenceError::Constraint { problem })
    }

    /// The whole text, its tokens, and why it ended.
    pub(super) fn finish(mut self) -> Result<(String, Vec<u32>, FinishReason), InferenceError> {
        if let (Some(guide), FinishReason::Length | FinishReason::EndOfTurn) = (&mut self.guide, self.finish) {
            guide.complete().map_err(|problem| InferenceError::Constraint { problem })?;
            self.finish = FinishReason::EndOfTurn;
        }
        let (held, text, written) =
            self.stream.finish(&self.generator.vocabulary).map_err(|error| self.generator.fault(error))?;
        if !held.is_empty() && self.finish != FinishReason::Cancelled {
            // The text is complete already, so a request to stop has nothing left to stop.
            let _ = (self.sink)(&held);
        }
        Ok((text, written, self.finish))
    }
}
