//! The index of vectors audits itself: sampled searches are compared with looking at every vector, and where too few of the
//! nearest were found, searches keep more nodes in view.

use crate::ann::EXPANSION_SEARCH;
use crate::ann_graph::Graph;

/// Searches compared.
const SAMPLES: usize = 200;
/// The nearest that each should find.
const NEAREST: usize = 10;
/// What a search of the knowledge base asks for to get [`NEAREST`].
const ASKED: usize = NEAREST + NEAREST / 2 + 16;
/// Least share of them that is good enough.
const WANTED: f64 = 0.985;
const MOST_EXPANSION: usize = 1024;
/// What a sample has of a vector far from it: queries don't lie quite where texts do.
const STRANGE: f32 = 0.15;
/// Indexes of fewer entries are not audited: they are asked for little, and answer well.
const LEAST_ENTRIES: usize = 10_000;

/// Has searches of `graph` keep as many nodes in view as they need: how many, and the share of the nearest that they then
/// find.
///
/// A sample lies between two vectors that are there, nearer to one of them, as a query does that resembles a text.
pub(crate) fn tune(graph: &mut Graph) -> (usize, Option<f64>) {
    let entries = graph.entries();
    if entries < LEAST_ENTRIES {
        return (EXPANSION_SEARCH, None);
    }
    let step = entries / SAMPLES;
    let samples: Vec<Vec<i8>> = (0..SAMPLES)
        .map(|at| {
            let (near, far) =
                (graph.row((at * step) as u32), graph.row(((at * step + entries / 2 + 1) % entries) as u32));
            near.iter().zip(far).map(|(&near, &far)| mixed(near.cast_signed(), far.cast_signed())).collect()
        })
        .collect();
    let exact = graph.nearest(&samples, NEAREST);
    let mut expansion = EXPANSION_SEARCH;
    loop {
        graph.set_breadth(expansion);
        let recall = recall(graph, &samples, &exact);
        if recall >= WANTED || expansion >= MOST_EXPANSION {
            tracing::debug!(expansion, recall, "the index of vectors was audited");
            return (expansion, Some(recall));
        }
        expansion *= 2;
    }
}

fn mixed(near: i8, far: i8) -> i8 {
    ((1.0 - STRANGE) * f32::from(near) + STRANGE * f32::from(far)).round() as i8
}

fn recall(graph: &Graph, samples: &[Vec<i8>], exact: &[Vec<i64>]) -> f64 {
    let found = |(sample, exact): (&Vec<i8>, &Vec<i64>)| {
        let hits = graph.search_bytes(sample, ASKED, &|_| true);
        exact.iter().filter(|chunk| hits.contains(chunk)).count()
    };
    let wanted: usize = exact.iter().map(Vec::len).sum();
    samples.iter().zip(exact).map(found).sum::<usize>() as f64 / wanted.max(1) as f64
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;
    use crate::ann::{GraphBuilder, expected};
    use crate::ann_graph::tests::add;

    const COUNT: usize = 10_500;

    fn graph(dim: usize, count: usize) -> Graph {
        let mut random = StdRng::seed_from_u64(3);
        let mut vector = || -> Vec<f32> {
            let vector: Vec<f32> = (0..dim).map(|_| random.random_range(-1.0..1.0f32)).collect();
            let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
            vector.into_iter().map(|x| x / length).collect()
        };
        let vectors: Vec<Vec<f32>> = (0..count).map(|_| vector()).collect();
        let builder = GraphBuilder::new(dim).expect("index");
        add(&builder, &vectors, 1);
        Graph::from_bytes(builder.to_bytes().expect("bytes"), &expected(dim, count, count as i64)).expect("whole")
    }

    #[test]
    fn m49_searches_keep_as_many_nodes_in_view_as_finding_the_nearest_takes() {
        // Without any structure, and in so many dimensions, everything is about as far from everything else.
        let mut hard = graph(96, COUNT);
        let (expansion, recall) = tune(&mut hard);
        assert!(
            expansion > EXPANSION_SEARCH && recall.is_some_and(|recall| recall >= WANTED),
            "{expansion}, {recall:?}"
        );
        let (expansion, recall) = tune(&mut graph(6, COUNT));
        assert!(
            expansion == EXPANSION_SEARCH && recall.is_some_and(|recall| recall >= WANTED),
            "{expansion}, {recall:?}"
        );
        assert_eq!(tune(&mut graph(6, 500)), (EXPANSION_SEARCH, None));
    }
}
