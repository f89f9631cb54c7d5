//! The decoder on candle's tensors, for devices other than the processor, and what the one on the processor is tested against.
//!
//! One decoder for all architectures: embeddings, then layers of attention (or short convolution) and a gated
//! feed-forward block, then the logits of the last token.
//!
//! Shapes: a pass reads `s` new tokens, the hidden state is `[s, hidden]`, keys and values are
//! `[key_value_heads, positions, head_dim]`. Grouped queries (Ainslie et al. 2023) are folded into the rows of one product
//! per key head, so keys and values are never repeated.

mod state;

use std::io::{Read, Seek};
use std::sync::Arc;

use anchorite_models::GeneratorArchitecture as Architecture;
use candle_core::quantized::gguf_file::Content;
use candle_core::quantized::{QMatMul, QTensor};
use candle_core::{D, DType, Device, Module, Result, Tensor};
use candle_nn::ops::{rms_norm, softmax_last_dim};

use self::state::LayerState;
pub(crate) use self::state::State;
use super::spec::DecoderSpec;
use super::watch::Watch;
use crate::error::LoadError;

struct Norm {
    weight: Tensor,
    epsilon: f32,
}

impl Norm {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        rms_norm(&x.contiguous()?, &self.weight, self.epsilon)
    }
}

struct Projection {
    weight: QMatMul,
    bias: Option<Tensor>,
}

impl Projection {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = self.weight.forward(x)?;
        match &self.bias {
            Some(bias) => y.broadcast_add(bias),
            None => Ok(y),
        }
    }
}

struct Attention {
    query: Projection,
    key: Projection,
    value: Projection,
    output: Projection,
    query_norm: Option<Norm>,
    key_norm: Option<Norm>,
    key_value_heads: usize,
    window: Option<usize>,
}

/// The gated short convolution of LFM2: `out(c · conv(b · x))`, causal, one filter per channel.
struct ShortConvolution {
    input: Projection,
    output: Projection,
    /// `[hidden, length]`
    filter: Tensor,
}

enum Mixer {
    Attention(Attention),
    Convolution(ShortConvolution),
}

struct Layer {
    norm: Norm,
    mixer: Mixer,
    post_mixer_norm: Option<Norm>,
    feed_forward_norm: Norm,
    gate: Projection,
    up: Projection,
    down: Projection,
    post_feed_forward_norm: Option<Norm>,
}

/// A decoder with its weights as tensors.
pub(crate) struct TensorDecoder {
    spec: DecoderSpec,
    embeddings: Arc<QTensor>,
    layers: Vec<Layer>,
    norm: Norm,
    output: QMatMul,
    rope: Rope,
    rope_local: Option<Rope>,
    device: Device,
}

impl TensorDecoder {
    /// Reads the tensors of an already validated file.
    pub(crate) fn load<R: Read + Seek>(
        spec: DecoderSpec,
        content: &Content,
        reader: &mut R,
        device: &Device,
    ) -> std::result::Result<Self, LoadError> {
        let mut tensors = Tensors { content, reader, device, epsilon: spec.norm_epsilon as f32 };
        let embeddings = Arc::new(tensors.quantized("token_embd.weight")?);
        let output = if tensors.has("output.weight") {
            QMatMul::from_qtensor(tensors.quantized("output.weight")?)
        } else {
            QMatMul::from_arc(Arc::clone(&embeddings))
        }
        .map_err(|error| tensors.fault("output.weight", &error))?;
        let norm = tensors.norm(match spec.architecture {
            Architecture::Lfm2 if !tensors.has("output_norm.weight") => "token_embd_norm.weight",
            _ => "output_norm.weight",
        })?;
        let factors = if tensors.has("rope_freqs.weight") { Some(tensors.floats("rope_freqs.weight")?) } else { None };
        if let Some(factors) = factors.as_ref().filter(|factors| factors.len() != spec.head_dim / 2) {
            let problem = format!("{} factors for {} pairs", factors.len(), spec.head_dim / 2);
            return Err(tensors.fault("rope_freqs.weight", &problem));
        }
        let layers =
            (0..spec.layers).map(|index| tensors.layer(&spec, index)).collect::<std::result::Result<_, _>>()?;
        let rope = Rope::new(spec.head_dim, spec.rope_base, spec.rope_linear_factor, factors.as_deref());
        // Only Gemma 3 turns the positions of windowed layers otherwise; there they are never divided.
        let rope_local = (spec.architecture == Architecture::Gemma3)
            .then(|| Rope::new(spec.head_dim, spec.rope_base_local, 1.0, None));
        Ok(Self { spec, embeddings, layers, norm, output, rope, rope_local, device: device.clone() })
    }

    pub(crate) fn spec(&self) -> &DecoderSpec {
        &self.spec
    }

    /// Rows of the embedding matrix.
    pub(crate) fn vocabulary(&self) -> usize {
        self.embeddings.shape().dims().first().copied().unwrap_or(0)
    }

    /// An empty state.
    pub(crate) fn new_state(&self) -> State {
        State::new(
            self.layers
                .iter()
                .map(|layer| match &layer.mixer {
                    Mixer::Attention(attention) => LayerState::attention(attention.key_value_heads, self.spec.head_dim),
                    Mixer::Convolution(_) => LayerState::convolution(),
                })
                .collect(),
        )
    }

    /// Reads `tokens` after what `state` holds and returns the logits after the last of them; `watch` is shown its state after
    /// each layer.
    pub(crate) fn forward(&self, tokens: &[u32], state: &mut State, watch: Option<&mut Watch<'_>>) -> Result<Vec<f32>> {
        let hidden = self.hidden(tokens, state, watch)?;
        let last = hidden.narrow(0, tokens.len() - 1, 1)?;
        self.logits(&last)?.squeeze(0)?.to_vec1()
    }

    /// Reads `tokens` and returns the logits after each of them: `[s, vocabulary]`.
    pub(crate) fn forward_all(&self, tokens: &[u32], state: &mut State) -> Result<Tensor> {
        let hidden = self.hidden(tokens, state, None)?;
        self.logits(&hidden)
    }

    fn logits(&self, hidden: &Tensor) -> Result<Tensor> {
        let logits = self.output.forward(&self.norm.forward(hidden)?)?.to_dtype(DType::F32)?;
        match self.spec.logit_cap {
            Some(cap) => (logits / cap)?.tanh()? * cap,
            None => Ok(logits),
        }
    }

    fn hidden(&self, tokens: &[u32], state: &mut State, mut watch: Option<&mut Watch<'_>>) -> Result<Tensor> {
        let start = state.len();
        let ids = Tensor::new(tokens, &self.device)?;
        let mut x = self.embeddings.embedding(&ids)?.to_dtype(DType::F32)?;
        if self.spec.architecture == Architecture::Gemma3 {
            x = (x * (self.spec.hidden as f64).sqrt())?;
        }
        let rotation = self.rope.at(start, tokens.len(), &self.device)?;
        let rotation_local = match &self.rope_local {
            Some(rope) => Some(rope.at(start, tokens.len(), &self.device)?),
            None => None,
        };
        let masks = Masks::new(start, tokens.len(), self.spec.sliding_window, &self.device)?;
        for (index, layer) in self.layers.iter().enumerate() {
            let rotation = match &rotation_local {
                Some(local) if self.spec.is_local(index) => local,
                _ => &rotation,
            };
            x = self.layer(layer, &x, state.layer(index), rotation, &masks)?;
            if let Some(watch) = watch.as_mut().filter(|watch| watch.wants(index)) {
                watch.note(index, &x.get(tokens.len() - 1)?.to_vec1::<f32>()?);
            }
        }
        state.extend(tokens);
        Ok(x)
    }

    fn layer(
        &self,
        layer: &Layer,
        x: &Tensor,
        state: &mut LayerState,
        rotation: &Rotation,
        masks: &Masks,
    ) -> Result<Tensor> {
        let normed = layer.norm.forward(x)?;
        let mut mixed = match &layer.mixer {
            Mixer::Attention(attention) => self.attend(attention, &normed, state, rotation, masks)?,
            Mixer::Convolution(convolution) => convolve(convolution, &normed, state)?,
        };
        if let Some(norm) = &layer.post_mixer_norm {
            mixed = norm.forward(&mixed)?;
        }
        let x = (x + mixed)?;
        let normed = layer.feed_forward_norm.forward(&x)?;
        let gate = layer.gate.forward(&normed)?;
        let up = layer.up.forward(&normed)?;
        let gate = match self.spec.architecture {
            // Gemma gates with the tanh approximation of GELU, all others with SiLU.
            Architecture::Gemma3 => gate.gelu()?,
            _ => candle_nn::ops::silu(&gate)?,
        };
        let mut out = layer.down.forward(&(gate * up)?)?;
        if let Some(norm) = &layer.post_feed_forward_norm {
            out = norm.forward(&out)?;
        }
        x + out
    }

    fn attend(
        &self,
        attention: &Attention,
        x: &Tensor,
        state: &mut LayerState,
        rotation: &Rotation,
        masks: &Masks,
    ) -> Result<Tensor> {
        let (s, _) = x.dims2()?;
        let (heads, dim, groups) = (self.spec.heads, self.spec.head_dim, attention.key_value_heads);
        let query = attention.query.forward(x)?;
        let key = attention.key.forward(x)?;
        let value = attention.value.forward(x)?;
        let interleaved = self.spec.rope_interleaved();
        let split = |t: &Tensor, heads: usize| t.reshape((s, heads, dim))?.transpose(0, 1)?.contiguous();
        let query = rotation.apply(&normalise(attention.query_norm.as_ref(), &split(&query, heads)?)?, interleaved)?;
        let key = rotation.apply(&normalise(attention.key_norm.as_ref(), &split(&key, groups)?)?, interleaved)?;
        let value = split(&value, groups)?;
        let (keys, values) = state.append(&key, &value)?;

        let per_group = heads / groups;
        let query = (query * self.spec.attention_scale)?.reshape((groups, per_group * s, dim))?;
        let mut scores = query.matmul(&keys.transpose(1, 2)?)?;
        let positions = scores.dim(D::Minus1)?;
        if let Some(mask) = masks.get(attention.window) {
            scores = scores.reshape((groups, per_group, s, positions))?.broadcast_add(mask)?.reshape((
                groups,
                per_group * s,
                positions,
            ))?;
        }
        let mixed = softmax_last_dim(&scores)?.matmul(&values)?;
        let mixed = mixed.reshape((heads, s, dim))?.transpose(0, 1)?.reshape((s, heads * dim))?;
        attention.output.forward(&mixed)
    }
}

fn normalise(norm: Option<&Norm>, x: &Tensor) -> Result<Tensor> {
    match norm {
        Some(norm) => norm.forward(x),
        None => Ok(x.clone()),
    }
}

fn convolve(convolution: &ShortConvolution, x: &Tensor, state: &mut LayerState) -> Result<Tensor> {
    let (s, hidden) = x.dims2()?;
    let length = convolution.filter.dim(1)?;
    let projected = convolution.input.forward(x)?;
    let gate_in = projected.narrow(1, 0, hidden)?;
    let gate_out = projected.narrow(1, hidden, hidden)?;
    let signal = projected.narrow(1, 2 * hidden, hidden)?;
    let columns = state.convolve_over(&(gate_in * signal)?.contiguous()?, length)?;
    // `columns` starts `length - 1` rows before the new tokens, so the filter's taps are shifted sums of it.
    let mut sum = columns.narrow(0, 0, s)?.broadcast_mul(&convolution.filter.narrow(1, 0, 1)?.flatten_all()?)?;
    for tap in 1..length {
        let shifted = columns.narrow(0, tap, s)?;
        sum = (sum + shifted.broadcast_mul(&convolution.filter.narrow(1, tap, 1)?.flatten_all()?)?)?;
    }
    convolution.output.forward(&(gate_out * sum)?.contiguous()?)
}

/// Rotary frequencies (Su et al. 2021).
struct Rope {
    frequencies: Vec<f32>,
}

struct Rotation {
    cos: Tensor,
    sin: Tensor,
}

impl Rope {
    fn new(dim: usize, base: f32, linear_factor: f32, factors: Option<&[f32]>) -> Self {
        let frequencies = (0..dim / 2)
            .map(|pair| {
                let factor = factors.and_then(|factors| factors.get(pair)).copied().unwrap_or(1.0);
                1.0 / (base.powf((2 * pair) as f32 / dim as f32) * factor * linear_factor)
            })
            .collect();
        Self { frequencies }
    }

    fn at(&self, start: usize, count: usize, device: &Device) -> Result<Rotation> {
        let pairs = self.frequencies.len();
        let angles =
            (start..start + count).flat_map(|position| self.frequencies.iter().map(move |f| position as f32 * f));
        let (sin, cos): (Vec<f32>, Vec<f32>) = angles.map(f32::sin_cos).unzip();
        Ok(Rotation {
            cos: Tensor::from_vec(cos, (count, pairs), device)?,
            sin: Tensor::from_vec(sin, (count, pairs), device)?,
        })
    }
}

impl Rotation {
    fn apply(&self, x: &Tensor, interleaved: bool) -> Result<Tensor> {
        let x = x.unsqueeze(0)?.contiguous()?;
        let rotated = if interleaved {
            candle_nn::rotary_emb::rope_i(&x, &self.cos, &self.sin)?
        } else {
            candle_nn::rotary_emb::rope(&x, &self.cos, &self.sin)?
        };
        rotated.squeeze(0)
    }
}

/// Additive masks `[s, positions]`: 0 where a key may be seen, −∞ where not. None where every key may be seen.
struct Masks {
    global: Option<Tensor>,
    local: Option<Tensor>,
}

impl Masks {
    fn new(start: usize, count: usize, window: Option<usize>, device: &Device) -> Result<Self> {
        let total = start + count;
        let build = |window: usize| -> Result<Tensor> {
            let rows = (start..total).flat_map(|query| {
                (0..total).map(move |key| if key <= query && query - key < window { 0.0 } else { f32::NEG_INFINITY })
            });
            Tensor::from_vec(rows.collect::<Vec<f32>>(), (count, total), device)
        };
        let global = if count > 1 { Some(build(usize::MAX)?) } else { None };
        let local = match window {
            Some(window) if count > 1 || total > window => Some(build(window)?),
            _ => None,
        };
        Ok(Self { global, local })
    }

    fn get(&self, window: Option<usize>) -> Option<&Tensor> {
        if window.is_some() { self.local.as_ref() } else { self.global.as_ref() }
    }
}

struct Tensors<'a, R> {
    content: &'a Content,
    reader: &'a mut R,
    device: &'a Device,
    epsilon: f32,
}

impl<R: Read + Seek> Tensors<'_, R> {
    fn has(&self, name: &str) -> bool {
        self.content.tensor_infos.contains_key(name)
    }

    fn fault(&self, name: &str, problem: &dyn std::fmt::Display) -> LoadError {
        LoadError::Tensor { name: name.to_owned(), problem: problem.to_string() }
    }

    fn quantized(&mut self, name: &str) -> std::result::Result<QTensor, LoadError> {
        if !self.has(name) {
            return Err(self.fault(name, &"missing from the file"));
        }
        self.content.tensor(self.reader, name, self.device).map_err(|error| self.fault(name, &error))
    }

    fn float_tensor(&mut self, name: &str) -> std::result::Result<Tensor, LoadError> {
        let tensor = self.quantized(name)?;
        tensor.dequantize(self.device).map_err(|error| self.fault(name, &error))
    }

    fn floats(&mut self, name: &str) -> std::result::Result<Vec<f32>, LoadError> {
        let tensor = self.float_tensor(name)?;
        tensor.flatten_all().and_then(|flat| flat.to_vec1()).map_err(|error| self.fault(name, &error))
    }

    fn norm(&mut self, name: &str) -> std::result::Result<Norm, LoadError> {
        Ok(Norm { weight: self.float_tensor(name)?, epsilon: self.epsilon })
    }

    fn optional_norm(&mut self, name: &str) -> std::result::Result<Option<Norm>, LoadError> {
        if self.has(name) { self.norm(name).map(Some) } else { Ok(None) }
    }

    /// A product with weights `[rows, columns]`, checked against the sizes that the metadata promise.
    fn projection(
        &mut self,
        name: &str,
        rows: Option<usize>,
        columns: usize,
    ) -> std::result::Result<Projection, LoadError> {
        let weight_name = format!("{name}.weight");
        let weight = self.quantized(&weight_name)?;
        let shape = weight.shape().dims().to_vec();
        if shape.len() != 2 || shape[1] != columns || rows.is_some_and(|rows| shape[0] != rows) {
            let expected = rows.map_or_else(|| format!("[any, {columns}]"), |rows| format!("[{rows}, {columns}]"));
            return Err(self.fault(&weight_name, &format!("shape {shape:?}, expected {expected}")));
        }
        let weight = QMatMul::from_qtensor(weight).map_err(|error| self.fault(&weight_name, &error))?;
        let bias_name = format!("{name}.bias");
        let bias = if self.has(&bias_name) { Some(self.float_tensor(&bias_name)?) } else { None };
        Ok(Projection { weight, bias })
    }

    fn layer(&mut self, spec: &DecoderSpec, index: usize) -> std::result::Result<Layer, LoadError> {
        let name = |part: &str| format!("blk.{index}.{part}");
        let groups = spec.key_value_heads[index];
        let mixer = if groups > 0 {
            Mixer::Attention(Attention {
                query: self.projection(&name("attn_q"), Some(spec.heads * spec.head_dim), spec.hidden)?,
                key: self.projection(&name("attn_k"), Some(groups * spec.head_dim), spec.hidden)?,
                value: self.projection(&name("attn_v"), Some(groups * spec.head_dim), spec.hidden)?,
                output: self.projection(&name("attn_output"), Some(spec.hidden), spec.heads * spec.head_dim)?,
                query_norm: self.optional_norm(&name("attn_q_norm.weight"))?,
                key_norm: self.optional_norm(&name("attn_k_norm.weight"))?,
                key_value_heads: groups,
                window: if spec.is_local(index) { spec.sliding_window } else { None },
            })
        } else {
            let filter_name = name("shortconv.conv.weight");
            let filter = self.float_tensor(&filter_name)?;
            let filter = filter
                .reshape((spec.hidden, spec.convolution_length))
                .map_err(|error| self.fault(&filter_name, &error))?;
            Mixer::Convolution(ShortConvolution {
                input: self.projection(&name("shortconv.in_proj"), Some(3 * spec.hidden), spec.hidden)?,
                output: self.projection(&name("shortconv.out_proj"), Some(spec.hidden), spec.hidden)?,
                filter,
            })
        };
        let up = self.projection(&name("ffn_up"), None, spec.hidden)?;
        let width = self
            .content
            .tensor_infos
            .get(&name("ffn_up.weight"))
            .and_then(|info| info.shape.dims().first().copied())
            .unwrap_or(0);
        Ok(Layer {
            norm: self.norm(&name("attn_norm.weight"))?,
            mixer,
            post_mixer_norm: self.optional_norm(&name("post_attention_norm.weight"))?,
            feed_forward_norm: self.norm(&name("ffn_norm.weight"))?,
            gate: self.projection(&name("ffn_gate"), Some(width), spec.hidden)?,
            up,
            down: self.projection(&name("ffn_down"), Some(spec.hidden), width)?,
            post_feed_forward_norm: self.optional_norm(&name("post_ffw_norm.weight"))?,
        })
    }
}
