use anchorite_core::Limits;

use super::proto::{AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto};
use super::*;
use crate::{Activation, ModelLibrary, Pooling, Profile, SafetensorsHeader};

const HIDDEN: usize = 4;
const WIDE: usize = 6;

/// A BERT of one layer, quantised as ONNX Runtime does it, with known numbers.
struct Maker {
    prefix: &'static str,
    graph: GraphProto,
    per_column: bool,
}

fn node(kind: &str, input: &[&str], output: &[&str]) -> NodeProto {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    NodeProto { input: owned(input), output: owned(output), op_type: kind.to_owned(), attribute: Vec::new() }
}

fn constant(name: &str, tensor: TensorProto) -> NodeProto {
    let value = AttributeProto { name: "value".to_owned(), i: 0, t: Some(tensor) };
    NodeProto { attribute: vec![value], ..node("Constant", &[], &[name]) }
}

fn floats(name: &str, dims: &[i64], values: &[f32]) -> TensorProto {
    TensorProto {
        name: name.to_owned(),
        dims: dims.to_vec(),
        data_type: 1,
        float_data: values.to_vec(),
        ..TensorProto::default()
    }
}

fn bytes(name: &str, data_type: i32, dims: &[i64], values: Vec<u8>) -> TensorProto {
    TensorProto { name: name.to_owned(), dims: dims.to_vec(), data_type, raw_data: values, ..TensorProto::default() }
}

/// Distinct small numbers.
fn counting(length: usize) -> Vec<u8> {
    (0..length).map(|number| (number % 100) as u8).collect()
}

impl Maker {
    fn new(prefix: &'static str, per_column: bool) -> Self {
        Self { prefix, graph: GraphProto::default(), per_column }
    }

    fn table(&mut self, name: &str, rows: i64) {
        let name = format!("{}embeddings.{name}.weight", self.prefix);
        let of = |part: &str| format!("{name}_{part}");
        self.graph.initializer.push(bytes(
            &of("quantized"),
            2,
            &[rows, HIDDEN as i64],
            counting(rows as usize * HIDDEN),
        ));
        self.graph.initializer.push(floats(&of("scale"), &[], &[0.5]));
        let zero_point = TensorProto { int32_data: vec![128], ..bytes(&of("zero_point"), 2, &[], vec![]) };
        self.graph.initializer.push(zero_point);
        self.graph.node.push(node("Gather", &[&of("quantized"), "ids"], &[&of("picked")]));
        let inputs = [of("picked"), of("scale"), of("zero_point")];
        self.graph.node.push(node("DequantizeLinear", &[&inputs[0], &inputs[1], &inputs[2]], &[&of("out")]));
    }

    /// A quantised linear layer; `anonymous` weights are told apart by their bias alone.
    fn linear(&mut self, name: &str, inputs: usize, outputs: usize, anonymous: bool) {
        let number = self.graph.node.len();
        let weight = if anonymous { format!("onnx::MatMul_{number}") } else { format!("{name}.weight") };
        let of = |part: &str| format!("{weight}_{part}");
        let out = |part: &str| format!("{name}/{part}");
        let columns = if self.per_column { outputs } else { 1 };
        let dims: &[i64] = if self.per_column { &[outputs as i64] } else { &[] };
        let scales: Vec<f32> = (0..columns).map(|column| (column + 1) as f32).collect();
        self.graph.initializer.extend([
            bytes(&of("quantized"), 3, &[inputs as i64, outputs as i64], counting(inputs * outputs)),
            floats(&of("scale"), dims, &scales),
            bytes(&of("zero_point"), 3, dims, vec![(-1i8).cast_unsigned(); columns]),
            floats(&format!("{name}.bias"), &[outputs as i64], &vec![0.25; outputs]),
        ]);
        self.graph.node.extend([
            node("DynamicQuantizeLinear", &["x"], &[&out("q"), &out("s"), &out("z")]),
            node("Mul", &[&out("s"), &of("scale")], &[&out("scales")]),
            node("MatMulInteger", &[&out("q"), &of("quantized"), &out("z"), &of("zero_point")], &[&out("product")]),
            node("Cast", &[&out("product")], &[&out("cast")]),
            node("Mul", &[&out("cast"), &out("scales")], &[&out("scaled")]),
            node("Add", &[&format!("{name}.bias"), &out("scaled")], &[&out("sum")]),
        ]);
    }

    fn norm(&mut self, name: &str) {
        for part in ["weight", "bias"] {
            self.graph.initializer.push(floats(&format!("{name}.{part}"), &[HIDDEN as i64], &[1.0; HIDDEN]));
        }
        self.graph.node.extend([
            constant(&format!("{name}/eps"), floats("", &[], &[1e-12])),
            node("Add", &["variance", &format!("{name}/eps")], &[&format!("{name}/added")]),
            node("Sqrt", &[&format!("{name}/added")], &[&format!("{name}/root")]),
        ]);
    }

    fn encoder(mut self) -> Self {
        for (name, rows) in [("word_embeddings", 7), ("position_embeddings", 5), ("token_type_embeddings", 2)] {
            self.table(name, rows);
        }
        let layer = format!("{}encoder.layer.0", self.prefix);
        for part in ["attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"] {
            self.linear(&format!("{layer}.{part}"), HIDDEN, HIDDEN, true);
        }
        self.linear(&format!("{layer}.intermediate.dense"), HIDDEN, WIDE, true);
        self.linear(&format!("{layer}.output.dense"), WIDE, HIDDEN, true);
        self.norm(&format!("{}embeddings.LayerNorm", self.prefix));
        self.norm(&format!("{layer}.attention.output.LayerNorm"));
        self.norm(&format!("{layer}.output.LayerNorm"));
        let integer =
            |value| TensorProto { dims: vec![1], data_type: 7, int64_data: vec![value], ..TensorProto::default() };
        self.graph.node.extend([
            constant("heads", integer(2)),
            constant("components", integer(2)),
            node("Concat", &["batch", "length", "heads", "components"], &["shape"]),
            node("Erf", &["x"], &["y"]),
        ]);
        self
    }

    fn reranker() -> Self {
        let mut maker = Self::new("bert.", false).encoder();
        maker.linear("bert.pooler.dense", HIDDEN, HIDDEN, false);
        maker.linear("classifier", HIDDEN, 1, false);
        maker
    }

    fn initializer(&mut self, name: &str) -> &mut TensorProto {
        self.graph.initializer.iter_mut().find(|tensor| tensor.name == name).expect("there")
    }

    fn import(self, kind: &ImportKind) -> (tempfile::TempDir, Result<Imported, ImportError>) {
        let folder = tempfile::tempdir().expect("folder");
        let onnx = folder.path().join("model.onnx");
        std::fs::write(&onnx, ModelProto { graph: Some(self.graph) }.encode_to_vec()).expect("write");
        let out = folder.path().join("out");
        std::fs::create_dir(&out).expect("create");
        let imported = import_onnx(&onnx, &out, kind);
        (folder, imported)
    }
}

fn refused(maker: Maker) -> String {
    let (folder, imported) = maker.import(&ImportKind::Reranker);
    assert!(!folder.path().join("out/model.safetensors").exists(), "a failed import leaves no weights");
    imported.expect_err("refused").to_string()
}

fn values(folder: &Path, name: &str) -> Vec<f32> {
    let bytes = std::fs::read(folder.join("model.safetensors")).expect("read");
    let file = safetensors::SafeTensors::deserialize(&bytes).expect("the library reads what was written");
    let tensor = file.tensor(name).expect("there");
    tensor.data().as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

#[test]
fn m01_anonymous_matrices_are_told_apart_scaled_back_and_transposed() {
    let (folder, imported) = Maker::reranker().import(&ImportKind::Reranker);
    let imported = imported.expect("imports");
    let out = folder.path().join("out");
    assert_eq!(imported.tensors, 3 + 2 + 16 + 4);
    assert_eq!((imported.spec.layers, imported.spec.attention_heads, imported.spec.intermediate_size), (1, 2, WIDE));
    assert_eq!((imported.spec.vocab_size, imported.spec.max_position_embeddings), (7, 5));
    assert_eq!((imported.spec.layer_norm_eps, imported.spec.activation), (1e-12, Activation::Gelu));
    assert_eq!(imported.spec.head, Head::Classifier { labels: 1 });

    let path = out.join("model.safetensors");
    let header = SafetensorsHeader::read(&path, &Limits::default()).expect("the validator accepts it");
    assert_eq!(header.check_encoder(&path, &imported.spec).expect("fits config.json"), "bert.");
    assert!(header.metadata["imported_from"].contains(&imported.source_sha256));

    let table = values(&out, "bert.embeddings.word_embeddings.weight");
    assert_eq!(&table[..2], [-64.0, -63.5], "(0 − 128) × 0.5, (1 − 128) × 0.5");
    // Row `output` of [outputs, inputs] is column `output` of the graph's [inputs, outputs]; the zero point is −1.
    let wide = values(&out, "bert.encoder.layer.0.intermediate.dense.weight");
    assert_eq!(&wide[..HIDDEN], [1.0, 7.0, 13.0, 19.0]);
    assert_eq!(values(&out, "classifier.weight"), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(values(&out, "classifier.bias"), [0.25]);
}

#[test]
fn scales_may_differ_by_output_and_names_may_lack_the_prefix() {
    let facts = SentenceFacts {
        pooling: Pooling::Cls,
        normalize: true,
        max_tokens: None,
        query_prefix: "Find: ".to_owned(),
        document_prefix: String::new(),
        lower_case: false,
    };
    let (folder, imported) = Maker::new("", true).encoder().import(&ImportKind::Embedder(facts));
    let imported = imported.expect("imports");
    let out = folder.path().join("out");
    assert_eq!(
        (imported.spec.pooling, imported.spec.normalize, imported.spec.head),
        (Some(Pooling::Cls), true, Head::None)
    );
    assert_eq!(imported.spec.query_prefix, "Find: ");
    let wide = values(&out, "encoder.layer.0.intermediate.dense.weight");
    assert_eq!(&wide[HIDDEN..2 * HIDDEN], [4.0, 16.0, 28.0, 40.0], "column 1 is scaled by 2");
    assert_eq!(crate::ModelFolder::open(&out).expect("opens").role, ModelRole::Embedder);
}

#[test]
fn the_same_file_gives_the_same_bytes() {
    let read = || {
        let (folder, imported) = Maker::reranker().import(&ImportKind::Reranker);
        imported.expect("imports");
        std::fs::read(folder.path().join("out/model.safetensors")).expect("read")
    };
    assert_eq!(read(), read());
}

#[test]
fn a_graph_the_importer_does_not_know_is_refused_by_name() {
    let changed = |change: &dyn Fn(&mut Maker)| {
        let mut maker = Maker::reranker();
        change(&mut maker);
        refused(maker)
    };
    let key = "bert.encoder.layer.0.attention.self.key";
    let is_key_add = |node: &NodeProto| node.op_type == "Add" && node.input[0] == format!("{key}.bias");
    assert!(changed(&|maker| maker.graph.node.retain(|node| !is_key_add(node))).contains(&format!("`{key}.weight`")));
    let stray = bytes("stray_quantized", 3, &[1], vec![1]);
    assert!(changed(&|maker| maker.graph.initializer.push(stray.clone())).contains("stray_quantized"));
    assert!(
        changed(&|maker| maker.graph.initializer.push(floats("other.weight", &[1], &[1.0]))).contains("other.weight")
    );
    assert!(changed(&|maker| maker.initializer("classifier.bias").dims = vec![2]).contains("classifier.bias"));
    let wrong_shape = |maker: &mut Maker| {
        *maker.initializer("bert.pooler.dense.bias") = floats("bert.pooler.dense.bias", &[3], &[0.0; 3]);
    };
    assert!(changed(&wrong_shape).contains("[3] instead of [4]"));
    assert!(
        changed(&|maker| maker.initializer("classifier.weight_scale").float_data[0] = f32::NAN)
            .contains("positive number")
    );
    assert!(changed(&|maker| maker.initializer("classifier.weight_zero_point").data_type = 2).contains("another type"));
    let outside = |maker: &mut Maker| maker.initializer("classifier.weight_quantized").data_location = 1;
    assert!(changed(&outside).contains("outside the ONNX file"));
    let short = |maker: &mut Maker| {
        maker.initializer("classifier.weight_quantized").raw_data.pop();
    };
    assert!(changed(&short).contains("holds 3 values"));
    assert!(changed(&|maker| maker.graph.node.retain(|node| node.op_type != "Erf")).contains("activation"));
    assert!(changed(&|maker| maker.graph.node.retain(|node| node.op_type != "Concat")).contains("attention heads"));
    let eps = |maker: &mut Maker| {
        let node = maker.graph.node.iter_mut().find(|node| node.output[0].ends_with("LayerNorm/eps")).expect("there");
        node.attribute[0].t = Some(floats("", &[], &[1e-5]));
    };
    assert!(changed(&eps).contains("epsilon"));
    assert!(refused(Maker::new("bert.", false).encoder()).contains("classifier.weight"));
}

#[test]
fn what_is_no_onnx_file_is_refused() {
    let folder = tempfile::tempdir().expect("folder");
    let onnx = folder.path().join("model.onnx");
    for text in [&b"not ONNX"[..], b"", &[0xFF; 100]] {
        std::fs::write(&onnx, text).expect("write");
        let error = import_onnx(&onnx, folder.path(), &ImportKind::Reranker).expect_err("refused");
        assert!(matches!(&error, ImportError::Decode { .. }), "{error}");
    }
}

#[test]
fn a_config_beside_the_file_must_agree() {
    let folder = tempfile::tempdir().expect("folder");
    let (onnx, out) = (folder.path().join("model.onnx"), folder.path().join("out"));
    std::fs::create_dir(&out).expect("create");
    std::fs::write(&onnx, ModelProto { graph: Some(Maker::reranker().graph) }.encode_to_vec()).expect("write");
    std::fs::write(folder.path().join("config.json"), r#"{"num_attention_heads":2}"#).expect("write");
    import_onnx(&onnx, &out, &ImportKind::Reranker).expect("agrees");
    std::fs::write(folder.path().join("config.json"), r#"{"num_attention_heads":4}"#).expect("write");
    let error = import_onnx(&onnx, &out, &ImportKind::Reranker).expect_err("disagrees").to_string();
    assert!(error.contains("`num_attention_heads` is 4") && error.contains("shows 2"), "{error}");
}

/// The reranker of every profile is an import of a real file; its bytes are pinned by the list of models.
#[test]
fn m01_the_imported_reranker_has_the_facts_of_the_real_model() {
    let folder = match ModelLibrary::discover(None).find(ModelRole::Reranker, Profile::Base) {
        Ok(folder) => folder,
        Err(error) => return eprintln!("skipped: {error}"),
    };
    let spec = EncoderSpec::read(&folder.path, ModelRole::Reranker).expect("reads");
    assert_eq!((spec.layers, spec.attention_heads, spec.hidden_size, spec.intermediate_size), (12, 12, 384, 1536));
    assert_eq!((spec.vocab_size, spec.max_position_embeddings, spec.max_tokens), (30_522, 512, 512));
    assert_eq!((spec.activation, spec.layer_norm_eps), (Activation::Gelu, 1e-12));
    assert_eq!(spec.head, Head::Classifier { labels: 1 });
    let path = folder.path.join("model.safetensors");
    let header = SafetensorsHeader::read(&path, &Limits::default()).expect("sound");
    assert_eq!(header.check_encoder(&path, &spec).expect("fits"), "bert.");
    assert_eq!(header.tensors.len(), 3 + 2 + 12 * 16 + 4);
    assert_eq!(header.tensors["bert.encoder.layer.11.output.dense.weight"].shape, [384, 1536]);
    assert_eq!(header.tensors["classifier.weight"].shape, [1, 384]);
}

#[test]
fn m04_the_installed_embedder_and_generators_are_sound() {
    let library = ModelLibrary::discover(None);
    if let Ok(folder) = library.find(ModelRole::Embedder, Profile::Base) {
        let spec = EncoderSpec::read(&folder.path, ModelRole::Embedder).expect("reads");
        assert_eq!((spec.pooling, spec.normalize, spec.max_tokens), (Some(Pooling::Mean), true, 256));
        let path = folder.path.join("model.safetensors");
        let header = SafetensorsHeader::read(&path, &Limits::default()).expect("sound");
        header.check_encoder(&path, &spec).expect("fits");
    } else {
        eprintln!("skipped: the embedder is not installed");
    }
    for profile in Profile::ALL {
        let Ok(folder) = library.find(ModelRole::Generator, profile) else {
            eprintln!("skipped: the generator of profile {profile} is not installed");
            continue;
        };
        let path = folder.gguf_file().expect("is GGUF");
        let header = crate::GgufHeader::read(path, &Limits::default()).expect("sound");
        let spec = crate::GeneratorSpec::read(path, &header).expect("reads");
        assert!(spec.layers >= 24 && spec.vocabulary > 49_000, "{spec:?}");
        assert!(header.text("tokenizer.chat_template").is_some_and(|template| template.contains("<|im_start|>")));
    }
}
