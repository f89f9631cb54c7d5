//! Finds the weights of the graph and gives them the names they have in safetensors.
//!
//! The quantiser leaves float tensors alone, and turns every weight `w` into three: the 8-bit numbers, a scale and a zero
//! point. Embeddings keep their name with `_quantized` behind it. Matrices often have no name of their own; which one it
//! is shows in the graph: `MatMulInteger` → `Cast` → `Mul` (by the scale) → `Add` (of a bias that has a name).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::proto::{GraphProto, NodeProto, TensorProto};
use super::tensor::FLOAT;
use crate::ImportError;

/// A weight and how to get its values.
enum Weight<'a> {
    /// Floats, as they are.
    Plain(&'a TensorProto),
    /// (q − zero point) × scale, of a table of rows.
    Rows(Quantised<'a>),
    /// The same, of a matrix that the graph has as `[inputs, outputs]` and safetensors as `[outputs, inputs]`.
    Matrix(Quantised<'a>),
}

/// 8-bit numbers with their scale and zero point, each of which is one number or one per column.
struct Quantised<'a> {
    numbers: &'a TensorProto,
    scale: &'a TensorProto,
    zero_point: Option<&'a TensorProto>,
}

/// Every weight by its name in safetensors.
pub(super) struct Weights<'a> {
    by_name: BTreeMap<String, Weight<'a>>,
    /// 8-bit tensors of the file that belong to no weight found.
    unplaced: Vec<String>,
}

/// The graph's nodes by what they read and write.
pub(super) struct Index<'a> {
    pub(super) initializers: HashMap<&'a str, &'a TensorProto>,
    pub(super) producers: HashMap<&'a str, &'a NodeProto>,
    consumers: HashMap<&'a str, Vec<&'a NodeProto>>,
}

impl<'a> Index<'a> {
    pub(super) fn new(graph: &'a GraphProto) -> Self {
        let mut consumers: HashMap<&str, Vec<&NodeProto>> = HashMap::new();
        let mut producers = HashMap::new();
        for node in &graph.node {
            node.input.iter().for_each(|input| consumers.entry(input).or_default().push(node));
            node.output.iter().for_each(|output| {
                producers.insert(output.as_str(), node);
            });
        }
        let initializers = graph.initializer.iter().map(|tensor| (tensor.name.as_str(), tensor)).collect();
        Self { initializers, producers, consumers }
    }

    /// The one node of a kind that reads the first output of `node`.
    fn next(&self, node: &NodeProto, kind: &str) -> Option<&'a NodeProto> {
        let mut nodes = self.consumers.get(node.output.first()?.as_str())?.iter().filter(|next| next.op_type == kind);
        let found = nodes.next()?;
        nodes.next().is_none().then_some(*found)
    }

    fn initializer(&self, name: &str) -> Option<&'a TensorProto> {
        self.initializers.get(name).copied()
    }

    /// The constant of this name: an initializer, or the value of a `Constant` node.
    pub(super) fn constant(&self, name: &str) -> Option<&'a TensorProto> {
        self.initializer(name).or_else(|| {
            let node = self.producers.get(name).filter(|node| node.op_type == "Constant")?;
            node.attribute.iter().find(|attribute| attribute.name == "value")?.t.as_ref()
        })
    }
}

/// Finds every weight.
pub(super) fn collect<'a>(graph: &'a GraphProto, index: &Index<'a>) -> Result<Weights<'a>, ImportError> {
    let floats = graph.initializer.iter().filter(|tensor| tensor.data_type == FLOAT);
    let mut by_name: BTreeMap<String, Weight<'a>> =
        floats.map(|tensor| (tensor.name.clone(), Weight::Plain(tensor))).collect();
    for node in &graph.node {
        let found = match node.op_type.as_str() {
            "MatMulInteger" => matrix(index, node)?,
            "DequantizeLinear" => rows(index, node)?,
            _ => None,
        };
        by_name.extend(found);
    }
    let mut used = BTreeSet::new();
    for weight in by_name.values() {
        if let Weight::Rows(quantised) | Weight::Matrix(quantised) = weight {
            used.insert(quantised.numbers.name.as_str());
            used.extend(quantised.zero_point.map(|tensor| tensor.name.as_str()));
        }
    }
    let eight_bit = graph.initializer.iter().filter(|tensor| tensor.is_eight_bit());
    let unplaced = eight_bit.filter(|tensor| !used.contains(tensor.name.as_str())).map(|tensor| tensor.name.clone());
    let unplaced = unplaced.collect();
    Ok(Weights { by_name, unplaced })
}

/// `MatMulInteger(activation, weight, activation's zero point, weight's zero point)`, and what follows it.
fn matrix<'a>(index: &Index<'a>, node: &'a NodeProto) -> Result<Option<(String, Weight<'a>)>, ImportError> {
    let input = |place: usize| node.input.get(place).and_then(|name| index.initializer(name));
    let Some(numbers) = input(1) else { return Ok(None) };
    let product = index.next(node, "Cast").and_then(|cast| Some((cast, index.next(cast, "Mul")?)));
    let Some((cast, product)) = product else { return Ok(None) };
    let scale = product.input.iter().filter(|name| !cast.output.contains(name)).find_map(|name| {
        // Either the weight's scale itself, or its product with the activation's.
        index.initializer(name).or_else(|| {
            let both = index.producers.get(name.as_str()).filter(|both| both.op_type == "Mul")?;
            both.input.iter().find_map(|name| index.initializer(name))
        })
    });
    let scale = scale.ok_or_else(|| ImportError::Quantisation {
        tensor: numbers.name.clone(),
        reason: "the graph multiplies it by no scale".to_owned(),
    })?;
    let bias =
        index.next(product, "Add").and_then(|add| add.input.iter().find(|name| index.initializer(name).is_some()));
    let named_by_bias = bias.and_then(|name| name.strip_suffix(".bias")).map(|name| format!("{name}.weight"));
    let own_name =
        || numbers.name.strip_suffix("_quantized").filter(|name| name.ends_with(".weight")).map(str::to_owned);
    let Some(name) = named_by_bias.or_else(own_name) else { return Ok(None) };
    Ok(Some((name, Weight::Matrix(Quantised { numbers, scale, zero_point: input(3) }))))
}

/// `DequantizeLinear(rows, scale, zero point)`, where the rows are picked by a `Gather`.
fn rows<'a>(index: &Index<'a>, node: &'a NodeProto) -> Result<Option<(String, Weight<'a>)>, ImportError> {
    let Some(source) = node.input.first() else { return Ok(None) };
    let picked = index.producers.get(source.as_str()).filter(|producer| producer.op_type == "Gather");
    let table = picked.and_then(|gather| gather.input.first()).unwrap_or(source);
    let Some(numbers) = index.initializer(table) else { return Ok(None) };
    let Some(name) = numbers.name.strip_suffix("_quantized") else { return Ok(None) };
    let scale = node.input.get(1).and_then(|name| index.initializer(name)).ok_or_else(|| {
        ImportError::Quantisation { tensor: numbers.name.clone(), reason: "its scale is not in the file".to_owned() }
    })?;
    let zero_point = node.input.get(2).and_then(|name| index.initializer(name));
    Ok(Some((name.to_owned(), Weight::Rows(Quantised { numbers, scale, zero_point }))))
}

impl Quantised<'_> {
    /// The floats, in the order of the graph.
    fn floats(&self) -> Result<Vec<f32>, ImportError> {
        let numbers = self.numbers.small_integers()?;
        let columns = self.numbers.shape(numbers.len())?.last().copied().unwrap_or(1).max(1);
        let wrong = |reason: String| ImportError::Quantisation { tensor: self.numbers.name.clone(), reason };
        let scale = self.scale.floats()?;
        let zero_point = match self.zero_point {
            Some(tensor) if tensor.data_type != self.numbers.data_type => {
                return Err(wrong("its zero point is of another type".to_owned()));
            }
            Some(tensor) => tensor.small_integers()?,
            None => vec![0],
        };
        for (what, length) in [("scale", scale.len()), ("zero point", zero_point.len())] {
            if length != 1 && length != columns {
                return Err(wrong(format!("its {what} has {length} numbers for {columns} columns")));
            }
        }
        if !scale.iter().all(|scale| scale.is_finite() && *scale > 0.0) {
            return Err(wrong("a scale is not a positive number".to_owned()));
        }
        let of_column = |column: usize| {
            let zero_point = zero_point[if zero_point.len() == 1 { 0 } else { column }];
            (zero_point, scale[if scale.len() == 1 { 0 } else { column }])
        };
        let scaled = numbers.chunks(columns).flat_map(|row| {
            row.iter().enumerate().map(|(column, number)| {
                let (zero_point, scale) = of_column(column);
                f32::from(number - zero_point) * scale
            })
        });
        Ok(scaled.collect())
    }
}

impl Weights<'_> {
    pub(super) fn contains(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// The shape a tensor has in safetensors.
    pub(super) fn shape(&self, name: &str) -> Result<Vec<usize>, ImportError> {
        let weight = self.by_name.get(name).ok_or_else(|| ImportError::MissingTensor { tensor: name.to_owned() })?;
        let of = |tensor: &TensorProto, found: usize| tensor.shape(found);
        Ok(match weight {
            Weight::Plain(tensor) => of(tensor, tensor.floats()?.len())?,
            Weight::Rows(quantised) => of(quantised.numbers, quantised.numbers.small_integers()?.len())?,
            Weight::Matrix(quantised) => {
                let mut shape = of(quantised.numbers, quantised.numbers.small_integers()?.len())?;
                shape.reverse();
                shape
            }
        })
    }

    /// Fails unless the tensor is there with this shape.
    pub(super) fn check(&self, name: &str, expected: &[usize]) -> Result<(), ImportError> {
        let found = self.shape(name)?;
        if found == expected {
            return Ok(());
        }
        Err(ImportError::Shape { tensor: name.to_owned(), expected: expected.to_vec(), found })
    }

    /// Fails if the file has weights that are not among `expected`.
    pub(super) fn check_leftover(&self, expected: &[(String, Vec<usize>)]) -> Result<(), ImportError> {
        let mut left = self.unplaced.clone();
        for (name, weight) in &self.by_name {
            let is_weight = match weight {
                // Scales and small constants are floats too; parameters have these names.
                Weight::Plain(_) => name.ends_with(".weight") || name.ends_with(".bias"),
                Weight::Rows(_) | Weight::Matrix(_) => true,
            };
            // A bi-encoder's graph may carry the dense layer that its pooling never uses.
            let unused = name.contains("pooler.dense.");
            if is_weight && !unused && expected.iter().all(|(expected, _)| expected != name) {
                left.push(name.clone());
            }
        }
        if left.is_empty() { Ok(()) } else { Err(ImportError::Leftover { tensors: left }) }
    }

    /// The values of a tensor, in the order of safetensors.
    pub(super) fn values(&self, name: &str) -> Result<Vec<f32>, ImportError> {
        let weight = self.by_name.get(name).ok_or_else(|| ImportError::MissingTensor { tensor: name.to_owned() })?;
        match weight {
            Weight::Plain(tensor) => tensor.floats(),
            Weight::Rows(quantised) => quantised.floats(),
            Weight::Matrix(quantised) => {
                let shape = self.shape(name)?;
                Ok(transpose(&quantised.floats()?, shape.first().copied().unwrap_or(1)))
            }
        }
    }
}

/// `[inputs, outputs]` to `[outputs, inputs]`.
fn transpose(values: &[f32], outputs: usize) -> Vec<f32> {
    (0..outputs).flat_map(|output| values[output..].iter().step_by(outputs).copied()).collect()
}
