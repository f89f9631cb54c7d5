//! The weights of a GGUF file, laid out for the processor.

use anchorite_kernels::{BlockKind, BlockLinear, CausalHeads, FloatLinear, Isa, Team};
use anchorite_models::GeneratorArchitecture as Architecture;
use candle_core::Device;
use candle_core::quantized::gguf_file::{Content, TensorInfo};
use candle_core::quantized::{GgmlDType, QTensor};

use super::matrix::Matrix;
use super::rotary::Rotary;
use super::{Attention, Layer, Mixer, NativeDecoder, PAGE, Scratch, ShortConvolution};
use crate::error::LoadError;
use crate::generator::source::{ReadAt, Reader};
use crate::generator::spec::DecoderSpec;

impl NativeDecoder {
    /// Reads the tensors of an already validated file, to compute on `threads` threads.
    pub(crate) fn load(
        spec: DecoderSpec,
        content: &Content,
        source: &dyn ReadAt,
        threads: usize,
    ) -> Result<Self, LoadError> {
        let (isa, team) = (Isa::detect(), Team::new(threads));
        let tensors = Tensors { content, source, isa, team: &team };
        let embeddings = tensors.matrix("token_embd", None, spec.hidden)?;
        let output = match tensors.has("output.weight") {
            true => Some(tensors.matrix("output", None, spec.hidden)?),
            false => None,
        };
        let norm = tensors.norm(match spec.architecture {
            Architecture::Lfm2 if !tensors.has("output_norm.weight") => "token_embd_norm.weight",
            _ => "output_norm.weight",
        })?;
        let factors = if tensors.has("rope_freqs.weight") { Some(tensors.floats("rope_freqs.weight")?) } else { None };
        if let Some(factors) = factors.as_ref().filter(|factors| factors.len() != spec.head_dim / 2) {
            let problem = format!("{} factors for {} pairs", factors.len(), spec.head_dim / 2);
            return Err(tensors.fault("rope_freqs.weight", &problem));
        }
        let mut page = (0, 0);
        let layers = (0..spec.layers)
            .map(|index| tensors.layer(&spec, index, &mut page))
            .collect::<Result<Vec<_>, LoadError>>()?;
        let interleaved = spec.rope_interleaved();
        let rotary =
            Rotary::new(spec.head_dim, spec.rope_base, spec.rope_linear_factor, factors.as_deref(), interleaved);
        // Only Gemma 3 turns the positions of windowed layers otherwise; there they are never divided.
        let rotary_local = (spec.architecture == Architecture::Gemma3)
            .then(|| Rotary::new(spec.head_dim, spec.rope_base_local, 1.0, None, interleaved));
        let scratch = std::sync::Mutex::new(Scratch::default());
        Ok(Self { isa, team, spec, embeddings, layers, norm, output, rotary, rotary_local, page, scratch })
    }
}

/// Reads tensors by name, with the name in every error.
struct Tensors<'a> {
    content: &'a Content,
    source: &'a dyn ReadAt,
    isa: Isa,
    team: &'a Team,
}

/// How a type of GGUF is multiplied as it is; `None` for plain numbers and for what has no kernel of its own.
fn block_kind(kind: GgmlDType) -> Option<BlockKind> {
    Some(match kind {
        GgmlDType::Q4_0 => BlockKind::Q4_0,
        GgmlDType::Q4_1 => BlockKind::Q4_1,
        GgmlDType::Q5_0 => BlockKind::Q5_0,
        GgmlDType::Q5_1 => BlockKind::Q5_1,
        GgmlDType::Q8_0 => BlockKind::Q8_0,
        GgmlDType::Q4K => BlockKind::Q4K,
        GgmlDType::Q5K => BlockKind::Q5K,
        GgmlDType::Q6K => BlockKind::Q6K,
        _ => return None,
    })
}

impl Tensors<'_> {
    fn has(&self, name: &str) -> bool {
        self.content.tensor_infos.contains_key(name)
    }

    fn fault(&self, name: &str, problem: &dyn std::fmt::Display) -> LoadError {
        LoadError::Tensor { name: name.to_owned(), problem: problem.to_string() }
    }

    fn info(&self, name: &str) -> Result<&TensorInfo, LoadError> {
        self.content.tensor_infos.get(name).ok_or_else(|| self.fault(name, &"missing from the file"))
    }

    fn quantized(&self, name: &str) -> Result<QTensor, LoadError> {
        self.info(name)?;
        self.content.tensor(&mut Reader::new(self.source), name, &Device::Cpu).map_err(|error| self.fault(name, &error))
    }

    /// Any tensor as plain numbers.
    fn floats(&self, name: &str) -> Result<Vec<f32>, LoadError> {
        let tensor = self.quantized(name)?;
        let numbers = tensor.dequantize(&Device::Cpu).and_then(|tensor| tensor.flatten_all()?.to_vec1());
        numbers.map_err(|error| self.fault(name, &error))
    }

    fn norm(&self, name: &str) -> Result<Vec<f32>, LoadError> {
        self.floats(name)
    }

    fn optional_norm(&self, name: &str) -> Result<Option<Vec<f32>>, LoadError> {
        if self.has(name) { self.norm(name).map(Some) } else { Ok(None) }
    }

    /// Weights `[rows, columns]` with their bias, checked against the sizes that the metadata promise.
    fn matrix(&self, name: &str, rows: Option<usize>, columns: usize) -> Result<Matrix, LoadError> {
        let (weight_name, bias_name) = (format!("{name}.weight"), format!("{name}.bias"));
        let info = self.info(&weight_name)?;
        let (kind, shape, offset) = (info.ggml_dtype, info.shape.dims().to_vec(), info.offset);
        if shape.len() != 2 || shape[1] != columns || rows.is_some_and(|rows| shape[0] != rows) || shape[0] == 0 {
            let expected = rows.map_or_else(|| format!("[any, {columns}]"), |rows| format!("[{rows}, {columns}]"));
            return Err(self.fault(&weight_name, &format!("shape {shape:?}, expected {expected}")));
        }
        let bias = if self.has(&bias_name) { Some(self.floats(&bias_name)?) } else { None };
        if let Some(bias) = bias.as_ref().filter(|bias| bias.len() != shape[0]) {
            return Err(self.fault(&bias_name, &format!("{} numbers for {} outputs", bias.len(), shape[0])));
        }
        if matches!(kind, GgmlDType::F32 | GgmlDType::F16 | GgmlDType::BF16) {
            let weight = self.floats(&weight_name)?;
            let bias = bias.unwrap_or_else(|| vec![0.0; shape[0]]);
            return Ok(Matrix::Floats(FloatLinear::new(self.isa, &weight, &bias, columns)));
        }
        let Some(kind) = block_kind(kind) else {
            // Kinds of two and three bits, which have no kernel of their own, become eight bits, nearly exactly.
            let whole = self.quantized(&weight_name)?.dequantize(&Device::Cpu);
            let bytes = whole.and_then(|whole| Ok(QTensor::quantize(&whole, GgmlDType::Q8_0)?.data()?.into_owned()));
            let bytes = bytes.map_err(|error| self.fault(&weight_name, &error))?;
            let layer = BlockLinear::new(self.isa, self.team, BlockKind::Q8_0, &bytes, columns, bias.as_deref());
            return Ok(Matrix::Blocks(layer));
        };
        if !columns.is_multiple_of(kind.inputs()) {
            return Err(self.fault(&weight_name, &format!("rows of {columns}, not of blocks of {}", kind.inputs())));
        }
        let begin = self.content.tensor_data_offset.saturating_add(offset);
        let read = |at: usize, bytes: &mut [u8]| self.source.read_exact_at(bytes, begin.saturating_add(at as u64));
        let layer = BlockLinear::read(self.isa, self.team, kind, (shape[0], columns), bias.as_deref(), read);
        layer.map(Matrix::Blocks).map_err(|error| self.fault(&weight_name, &error))
    }

    fn layer(&self, spec: &DecoderSpec, index: usize, page: &mut (usize, usize)) -> Result<Layer, LoadError> {
        let name = |part: &str| format!("blk.{index}.{part}");
        let groups = spec.key_value_heads[index];
        let local = spec.is_local(index);
        let mixer = if groups > 0 {
            let heads = CausalHeads {
                count: spec.heads,
                groups,
                size: spec.head_dim,
                scale: spec.attention_scale as f32,
                window: if local { spec.sliding_window } else { None },
            };
            let offset = page.0;
            page.0 += heads.page_len(self.isa);
            Mixer::Attention(Box::new(Attention {
                query: self.matrix(&name("attn_q"), Some(spec.heads * spec.head_dim), spec.hidden)?,
                key: self.matrix(&name("attn_k"), Some(groups * spec.head_dim), spec.hidden)?,
                value: self.matrix(&name("attn_v"), Some(groups * spec.head_dim), spec.hidden)?,
                output: self.matrix(&name("attn_output"), Some(spec.hidden), spec.heads * spec.head_dim)?,
                query_norm: self.optional_norm(&name("attn_q_norm.weight"))?,
                key_norm: self.optional_norm(&name("attn_k_norm.weight"))?,
                heads,
                offset,
            }))
        } else {
            let filter_name = name("shortconv.conv.weight");
            let filter = self.floats(&filter_name)?;
            if filter.len() != spec.hidden * spec.convolution_length {
                return Err(self.fault(&filter_name, &format!("{} numbers", filter.len())));
            }
            let offset = page.1;
            page.1 += PAGE * spec.hidden;
            Mixer::Convolution(Box::new(ShortConvolution {
                input: self.matrix(&name("shortconv.in_proj"), Some(3 * spec.hidden), spec.hidden)?,
                output: self.matrix(&name("shortconv.out_proj"), Some(spec.hidden), spec.hidden)?,
                filter,
                offset,
            }))
        };
        let up = self.matrix(&name("ffn_up"), None, spec.hidden)?;
        let width = up.outputs();
        Ok(Layer {
            norm: self.norm(&name("attn_norm.weight"))?,
            mixer,
            post_mixer_norm: self.optional_norm(&name("post_attention_norm.weight"))?,
            feed_forward_norm: self.norm(&name("ffn_norm.weight"))?,
            gate: self.matrix(&name("ffn_gate"), Some(width), spec.hidden)?,
            up,
            down: self.matrix(&name("ffn_down"), Some(spec.hidden), width)?,
            post_feed_forward_norm: self.optional_norm(&name("post_ffw_norm.weight"))?,
            local,
        })
    }
}
