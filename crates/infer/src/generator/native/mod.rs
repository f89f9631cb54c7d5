//! The decoder on the processor, on this project's own kernels: embeddings, then layers of attention (or short convolution)
//! and a gated feed-forward block, then logits.
//!
//! Shapes: a pass reads `s` new tokens; the hidden state is `[s, hidden]`, queries `[s, heads, head_dim]`. What a token gives
//! depends on the tokens before it and on nothing else, to the bit: whether they are read in one pass or in many, alone or
//! from a page that another prompt left, on one thread or on eight.

mod load;
mod matrix;
mod pages;
mod rotary;

use std::sync::{Mutex, PoisonError};

use anchorite_kernels::{BlockRows, CausalHeads, Finish, Gate, Isa, PAGE, Team, rms_norm};
use anchorite_models::GeneratorArchitecture as Architecture;

use self::matrix::{Matrix, multiply};
pub(crate) use self::pages::{Page, Sequence};
use self::rotary::{Rotary, Rotation};
use super::spec::DecoderSpec;
use super::watch::Watch;

/// Rows for one thread at a time in what is done number by number.
const ROWS: usize = 8;

struct Attention {
    query: Matrix,
    key: Matrix,
    value: Matrix,
    output: Matrix,
    query_norm: Option<Vec<f32>>,
    key_norm: Option<Vec<f32>>,
    heads: CausalHeads,
    /// Where the layer's part of a page starts.
    offset: usize,
}

/// The gated short convolution of LFM2: `out(c · conv(b · x))`, causal, one filter per channel.
struct ShortConvolution {
    input: Matrix,
    output: Matrix,
    /// `[hidden, length]`
    filter: Vec<f32>,
    /// Where the layer's columns start in a page.
    offset: usize,
}

enum Mixer {
    Attention(Box<Attention>),
    Convolution(Box<ShortConvolution>),
}

struct Layer {
    norm: Vec<f32>,
    mixer: Mixer,
    post_mixer_norm: Option<Vec<f32>>,
    feed_forward_norm: Vec<f32>,
    gate: Matrix,
    up: Matrix,
    down: Matrix,
    post_feed_forward_norm: Option<Vec<f32>>,
    local: bool,
}

/// A decoder with its weights.
pub(crate) struct NativeDecoder {
    isa: Isa,
    team: Team,
    spec: DecoderSpec,
    embeddings: Matrix,
    layers: Vec<Layer>,
    norm: Vec<f32>,
    /// `None` where the embeddings are used once more.
    output: Option<Matrix>,
    rotary: Rotary,
    rotary_local: Option<Rotary>,
    /// Numbers of a page: of keys and values, and of columns.
    page: (usize, usize),
    scratch: Mutex<Scratch>,
}

#[derive(Default)]
struct Scratch {
    x: Vec<f32>,
    normed: Vec<f32>,
    query: Vec<f32>,
    key: Vec<f32>,
    value: Vec<f32>,
    mixed: Vec<f32>,
    gate: Vec<f32>,
    up: Vec<f32>,
    bytes: BlockRows,
}

impl NativeDecoder {
    pub(crate) fn spec(&self) -> &DecoderSpec {
        &self.spec
    }

    /// Rows of the embedding matrix.
    pub(crate) fn vocabulary(&self) -> usize {
        self.embeddings.outputs()
    }

    /// Numbers of a page: of keys and values, and of columns.
    pub(crate) fn page(&self) -> (usize, usize) {
        self.page
    }

    /// The instruction set, which decides how numbers lie in a page and how they were computed.
    pub(crate) fn instructions(&self) -> &'static str {
        self.isa.name()
    }

    /// Reads `tokens` after what `sequence` holds, and returns the logits after the last `wanted` of them: `wanted` rows.
    /// `go_on` is asked before every layer; `watch` is shown the state of the last token after each.
    ///
    /// # Errors
    /// That of `go_on`; then the sequence is as it was.
    ///
    /// # Panics
    /// If more rows are wanted than there are tokens, or a token has no embedding.
    pub(crate) fn forward<E>(
        &self,
        tokens: &[u32],
        sequence: &mut Sequence,
        wanted: usize,
        go_on: &dyn Fn() -> Result<(), E>,
        mut watch: Option<&mut Watch<'_>>,
    ) -> Result<Vec<f32>, E> {
        let hidden = self.spec.hidden;
        let start = sequence.len();
        sequence.extend(tokens, self.page.0, self.page.1);
        let mut scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        self.embed(tokens, &mut scratch.x);
        let rotation = self.rotary.at(start, tokens.len());
        let rotation_local = self.rotary_local.as_ref().map(|rotary| rotary.at(start, tokens.len()));
        for (index, layer) in self.layers.iter().enumerate() {
            go_on().inspect_err(|_| sequence.truncate(start))?;
            let rotation = rotation_local.as_ref().filter(|_| layer.local).unwrap_or(&rotation);
            self.layer(layer, start, rotation, sequence, &mut scratch);
            if let Some(watch) = &mut watch {
                watch.note(index, &scratch.x[(tokens.len() - 1) * hidden..]);
            }
        }
        let Scratch { x, normed, bytes, .. } = &mut *scratch;
        copy(normed, &x[(tokens.len() - wanted) * hidden..]);
        self.normalise(&self.norm, normed);
        let output = self.output.as_ref().unwrap_or(&self.embeddings);
        let mut logits = vec![0.0; wanted * output.outputs()];
        multiply(self.isa, &self.team, normed, bytes, [(output, Finish::Store, &mut logits)]);
        if let Some(cap) = self.spec.logit_cap {
            let cap = cap as f32;
            logits.iter_mut().for_each(|x| *x = (*x / cap).tanh() * cap);
        }
        Ok(logits)
    }

    fn embed(&self, tokens: &[u32], x: &mut Vec<f32>) {
        let hidden = self.spec.hidden;
        x.resize(tokens.len() * hidden, 0.0);
        self.team.chunks(x, hidden, |index, row| self.embeddings.row(tokens[index] as usize, row));
        if self.spec.architecture == Architecture::Gemma3 {
            let factor = (hidden as f32).sqrt();
            x.iter_mut().for_each(|x| *x *= factor);
        }
    }

    /// Normalises each row of `x` in place.
    fn normalise(&self, weight: &[f32], x: &mut [f32]) {
        let epsilon = self.spec.norm_epsilon as f32;
        self.team.chunks(x, weight.len() * ROWS, |_, rows| rms_norm(self.isa, rows, weight, epsilon));
    }

    fn layer(&self, layer: &Layer, start: usize, rotation: &Rotation, sequence: &mut Sequence, scratch: &mut Scratch) {
        let (isa, team) = (self.isa, &self.team);
        copy(&mut scratch.normed, &scratch.x);
        self.normalise(&layer.norm, &mut scratch.normed);
        let output = match &layer.mixer {
            Mixer::Attention(attention) => {
                self.attend(attention, start, rotation, sequence, scratch);
                &attention.output
            }
            Mixer::Convolution(convolution) => {
                self.convolve(convolution, start, sequence, scratch);
                &convolution.output
            }
        };
        let Scratch { x, normed, mixed, gate, up, bytes, .. } = scratch;
        self.add(output, mixed, layer.post_mixer_norm.as_deref(), x, normed, bytes);
        copy(normed, x);
        self.normalise(&layer.feed_forward_norm, normed);
        let width = layer.up.outputs();
        let rows = x.len() / self.spec.hidden;
        gate.resize(rows * width, 0.0);
        up.resize(rows * width, 0.0);
        multiply(isa, team, normed, bytes, [(&layer.gate, Finish::Store, gate), (&layer.up, Finish::Store, up)]);
        // Gemma gates with the tanh approximation of GELU, all others with SiLU.
        let function = if self.spec.architecture == Architecture::Gemma3 { Gate::GeluTanh } else { Gate::Silu };
        let piece = width.div_ceil(if rows == 1 { team.size() } else { 1 }).next_multiple_of(64);
        team.chunks(gate, piece, |index, gate| function.apply(isa, gate, &up[index * piece..][..gate.len()]));
        self.add(&layer.down, gate, layer.post_feed_forward_norm.as_deref(), x, normed, bytes);
    }

    /// Adds `matrix` applied to `from`, normalised where there is a norm, to `x`; `between` is memory to work in.
    fn add(
        &self,
        matrix: &Matrix,
        from: &[f32],
        norm: Option<&[f32]>,
        x: &mut [f32],
        between: &mut Vec<f32>,
        bytes: &mut BlockRows,
    ) {
        let Some(norm) = norm else {
            multiply(self.isa, &self.team, from, bytes, [(matrix, Finish::Add, x)]);
            return;
        };
        between.resize(x.len(), 0.0);
        multiply(self.isa, &self.team, from, bytes, [(matrix, Finish::Store, between)]);
        self.normalise(norm, between);
        x.iter_mut().zip(between.iter()).for_each(|(x, y)| *x += y);
    }

    fn attend(
        &self,
        attention: &Attention,
        start: usize,
        rotation: &Rotation,
        sequence: &mut Sequence,
        scratch: &mut Scratch,
    ) {
        let Scratch { normed, query, key, value, mixed, bytes, .. } = scratch;
        let (dim, heads) = (self.spec.head_dim, &attention.heads);
        let rows = normed.len() / self.spec.hidden;
        query.resize(rows * heads.count * dim, 0.0);
        key.resize(rows * heads.groups * dim, 0.0);
        value.resize(rows * heads.groups * dim, 0.0);
        let jobs = [
            (&attention.query, Finish::Store, query.as_mut_slice()),
            (&attention.key, Finish::Store, key.as_mut_slice()),
            (&attention.value, Finish::Store, value.as_mut_slice()),
        ];
        multiply(self.isa, &self.team, normed, bytes, jobs);
        let parts = [(&mut *query, heads.count, &attention.query_norm), (&mut *key, heads.groups, &attention.key_norm)];
        for (x, count, norm) in parts {
            let width = count * dim;
            self.team.chunks(x, width * ROWS, |piece, x| {
                if let Some(norm) = norm {
                    rms_norm(self.isa, x, norm, self.spec.norm_epsilon as f32);
                }
                for (index, x) in x.chunks_exact_mut(width).enumerate() {
                    rotation.apply(piece * ROWS + index, x, dim);
                }
            });
        }
        let layer = attention.offset..attention.offset + heads.page_len(self.isa);
        for (row, (key, value)) in
            key.chunks_exact(heads.groups * dim).zip(value.chunks_exact(heads.groups * dim)).enumerate()
        {
            let page = sequence.own_page(start + row);
            heads.remember(self.isa, &mut page.attention[layer.clone()], (start + row) % PAGE, key, value);
        }
        let pages: Vec<&[u16]> = sequence.pages().iter().map(|page| &page.attention[layer.clone()]).collect();
        mixed.resize(query.len(), 0.0);
        heads.attend(self.isa, &self.team, query, start, &pages, mixed);
    }

    fn convolve(&self, convolution: &ShortConvolution, start: usize, sequence: &mut Sequence, scratch: &mut Scratch) {
        let Scratch { normed, query: projected, mixed, bytes, .. } = scratch;
        let hidden = self.spec.hidden;
        let length = self.spec.convolution_length;
        projected.resize(normed.len() * 3, 0.0);
        multiply(self.isa, &self.team, normed, bytes, [(&convolution.input, Finish::Store, projected)]);
        mixed.resize(normed.len(), 0.0);
        for (row, projected) in projected.chunks_exact(3 * hidden).enumerate() {
            let position = start + row;
            let at = |position: usize| convolution.offset + position % PAGE * hidden;
            let (gate_in, rest) = projected.split_at(hidden);
            let (gate_out, signal) = rest.split_at(hidden);
            let column = &mut sequence.own_page(position).columns[at(position)..][..hidden];
            for ((column, gate), signal) in column.iter_mut().zip(gate_in).zip(signal) {
                *column = gate * signal;
            }
            let mixed = &mut mixed[row * hidden..][..hidden];
            mixed.fill(0.0);
            // The last tap is on the token itself; before the first token there is nothing.
            for tap in (0..length).filter(|tap| position + tap + 1 >= length) {
                let seen = position + tap + 1 - length;
                let column = &sequence.pages()[seen / PAGE].columns[at(seen)..][..hidden];
                for ((mixed, column), filter) in
                    mixed.iter_mut().zip(column).zip(convolution.filter.chunks_exact(length))
                {
                    *mixed += column * filter[tap];
                }
            }
            mixed.iter_mut().zip(gate_out).for_each(|(mixed, gate)| *mixed *= gate);
        }
    }
}

/// Puts `from` in place of what `to` held.
fn copy(to: &mut Vec<f32>, from: &[f32]) {
    to.clear();
    to.extend_from_slice(from);
}
