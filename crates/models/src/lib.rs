//! Finding, verifying and reading the descriptions of model folders; import of ONNX encoders.
//!
//! Loading weights into a backend happens in `infer`. What happens here is everything before it: the known models
//! ([`Manifest`]), where they lie ([`ModelLibrary`]), whether their bytes are the right ones ([`verify`], [`fingerprint`]),
//! what their files say ([`EncoderSpec`], [`GeneratorSpec`]), and whether a file may be handed to a library at all
//! ([`SafetensorsHeader`], [`GgufHeader`]).
//!
//! Architecture invariant: nothing here reaches for a network. What is missing is an error that says where it was looked
//! for and what to do.

mod config;
mod error;
mod folder;
mod generator;
mod gguf;
mod hub_cache;
mod locate;
mod manifest;
mod memory;
mod onnx;
mod probes;
mod safetensors_check;
mod sentence;
mod tokenizer_check;
mod verify;

pub use config::{Activation, Architecture, EncoderSpec, Head};
pub use error::{ImportError, ModelError};
pub use folder::{ModelFolder, ModelKind, ModelRole, Origin};
pub use generator::{GeneratorArchitecture, GeneratorSpec};
pub use gguf::{GgmlType, GgufHeader, GgufTensor, GgufValue};
pub use locate::{ModelLibrary, Root, Wanted, cache_folder, models_data_folder};
pub use manifest::{ImportSource, KnownFile, KnownModel, Manifest, PackageFile, Profile, Source, Upstream};
pub use memory::{available_memory, check_memory};
pub use onnx::{ImportKind, Imported, import_onnx};
pub use probes::probe;
pub use safetensors_check::{Dtype, SafetensorsHeader, TensorEntry};
pub use sentence::{Pooling, SentenceFacts};
pub use tokenizer_check::{Rows, check_tokenizer};
pub use verify::{Depth, Progress, Verified, VerifiedFile, fingerprint, hash_file, verify, write_whole};
