//! The decoder where it computes: on the processor by this project's kernels, elsewhere by candle's tensors; with what it
//! remembers.

use anchorite_core::{Budget, BudgetExceeded};
use candle_core::quantized::gguf_file::Content;

use super::native::{NativeDecoder, Sequence};
use super::prefix::{PrefixCache, common};
use super::source::{ReadAt, Reader};
use super::spec::DecoderSpec;
use super::tensors::{State, TensorDecoder};
use super::watch::Watch;
use crate::device::{DeviceChoice, threads};
use crate::error::LoadError;

/// Tokens computed in one pass at most; longer prompts are read in pieces of this size, so that memory stays bounded and a
/// budget can interrupt between them.
pub(super) const PASS_TOKENS: usize = 256;

/// Bytes of remembered keys and values that are kept for prompts to come.
const PREFIX_BYTES: usize = 256 << 20;

pub(super) enum Body {
    Native(Box<NativeDecoder>),
    Tensors(Box<TensorDecoder>),
}

/// The state that tokens are read into, and the states kept.
pub(super) enum Memory {
    Native { state: Sequence, kept: PrefixCache },
    Tensors(State),
}

impl Body {
    pub(super) fn load(
        spec: DecoderSpec,
        content: &Content,
        source: &dyn ReadAt,
        device: DeviceChoice,
    ) -> Result<Self, LoadError> {
        let device = device.open()?;
        Ok(if device.is_cpu() {
            Self::Native(Box::new(NativeDecoder::load(spec, content, source, threads())?))
        } else {
            Self::Tensors(Box::new(TensorDecoder::load(spec, content, &mut Reader::new(source), &device)?))
        })
    }

    pub(super) fn spec(&self) -> &DecoderSpec {
        match self {
            Self::Native(decoder) => decoder.spec(),
            Self::Tensors(decoder) => decoder.spec(),
        }
    }

    /// Rows of the embedding matrix.
    pub(super) fn vocabulary(&self) -> usize {
        match self {
            Self::Native(decoder) => decoder.vocabulary(),
            Self::Tensors(decoder) => decoder.vocabulary(),
        }
    }

    pub(super) fn new_memory(&self) -> Memory {
        match self {
            Self::Native(_) => Memory::Native { state: Sequence::default(), kept: PrefixCache::new(PREFIX_BYTES) },
            Self::Tensors(decoder) => Memory::Tensors(decoder.new_state()),
        }
    }

    /// The decoder whose state is made of pages.
    pub(super) fn native(&self) -> Option<&NativeDecoder> {
        match self {
            Self::Native(decoder) => Some(decoder),
            Self::Tensors(_) => None,
        }
    }

    /// Reads at most [`PASS_TOKENS`] `tokens` after what the state holds, and returns the logits after the last `wanted` of
    /// them.
    ///
    /// # Errors
    /// [`Failure::Budget`] leaves the state as it was; after another failure it is of no use.
    pub(super) fn forward(
        &self,
        tokens: &[u32],
        memory: &mut Memory,
        wanted: usize,
        budget: &Budget,
        watch: Option<&mut Watch<'_>>,
    ) -> Result<Rows, Failure> {
        let width = self.vocabulary();
        let numbers = match (self, memory) {
            (Self::Native(decoder), Memory::Native { state, .. }) => {
                decoder.forward(tokens, state, wanted, &|| budget.check(), watch).map_err(Failure::Budget)?
            }
            (Self::Tensors(decoder), Memory::Tensors(state)) if wanted <= 1 => decoder.forward(tokens, state, watch)?,
            (Self::Tensors(decoder), Memory::Tensors(state)) => {
                let all = decoder.forward_all(tokens, state)?;
                all.narrow(0, tokens.len() - wanted, wanted)?.flatten_all()?.to_vec1()?
            }
            _ => return Err(candle_core::Error::msg("a state of another decoder").into()),
        };
        Ok(Rows { numbers, width })
    }
}

/// Why a pass did not come to its end.
pub(super) enum Failure {
    /// The budget ran out, or somebody asked to stop.
    Budget(BudgetExceeded),
    /// The backend failed.
    Backend(candle_core::Error),
}

impl From<candle_core::Error> for Failure {
    fn from(error: candle_core::Error) -> Self {
        Self::Backend(error)
    }
}

/// Logits, a row for each token.
pub(super) struct Rows {
    numbers: Vec<f32>,
    width: usize,
}

impl Rows {
    pub(super) fn get(&mut self, row: usize) -> &mut [f32] {
        &mut self.numbers[row * self.width..][..self.width]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[f32]> {
        self.numbers.chunks_exact(self.width)
    }
}

impl Memory {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Native { state, .. } => state.len(),
            Self::Tensors(state) => state.len(),
        }
    }

    /// Brings the state to the longest beginning of `tokens`, of `most` tokens at most, that is remembered; returns its
    /// length.
    pub(super) fn rewind(&mut self, tokens: &[u32], most: usize) -> usize {
        match self {
            Self::Native { state, kept } => {
                let shared = common(state.tokens(), tokens);
                let other = kept.longest(tokens);
                if other.len() > shared {
                    *state = other;
                }
                state.truncate(common(state.tokens(), tokens).min(most));
                state.len()
            }
            Self::Tensors(state) => {
                let common = common(state.tokens(), tokens);
                state.truncate(common.min(most))
            }
        }
    }

    /// Forgets what follows the first `len` tokens of the state.
    pub(super) fn truncate(&mut self, len: usize) {
        match self {
            Self::Native { state, .. } => state.truncate(len),
            Self::Tensors(state) => {
                state.truncate(len);
            }
        }
    }

    /// The state, where it is made of pages.
    pub(super) fn sequence(&self) -> Option<&Sequence> {
        match self {
            Self::Native { state, .. } => Some(state),
            Self::Tensors(_) => None,
        }
    }

    /// Keeps what was read another time for prompts that begin like it.
    pub(super) fn keep_read(&mut self, sequence: &Sequence) {
        if let Self::Native { kept, .. } = self {
            kept.keep(sequence);
        }
    }

    /// Keeps the state for prompts that begin like it.
    pub(super) fn keep(&mut self) {
        if let Self::Native { state, kept } = self {
            kept.keep(state);
        }
    }
}
