//! Searching a written graph where it lies, in memory or mapped (Malkov and Yashunin 2018, HNSW).
//!
//! usearch builds the graph and writes it; what is searched is the file's own bytes, so that little is copied, no foreign
//! code follows links that a file tells, and a search may begin where it should. The library goes down from one entry and
//! keeps only the nearest node in view on the way. Where texts lie in groups far apart, that way can end in the wrong group,
//! and then all of the nearest are missed. Here the nodes of an upper level, a few thousand at most, are compared one by one
//! and the search goes on from the best of them.
//!
//! Every link is compared with what is there: a damaged file gives poor results, never a read out of bounds.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;
use std::sync::OnceLock;

use anchorite_kernels::{Isa, byte_dots};
use tantivy::Directory;
use tantivy::directory::{MmapDirectory, OwnedBytes};

use crate::ann::{CONNECTIVITY, EXPANSION_SEARCH, quantised};
use crate::ann_file::{self, Expected, Head, NODE_HEAD_BYTES};
use crate::ranking::{Hit, TopK};

/// Most nodes that are compared one by one before the links are followed.
const MOST_LANDMARKS: usize = 4_096;
/// Nodes that a search keeps in view above the lowest level.
const BREADTH_ABOVE: usize = 16;
/// Fewest vectors that a thread of their own is worth its beginning for.
const SHARE: usize = 4_096;
/// Rows that are compared with every query of several before the next are read.
const TOGETHER: usize = 64;

const LOWEST_BYTES: usize = 4 + 4 * 2 * CONNECTIVITY;
const UPPER_BYTES: usize = 4 + 4 * CONNECTIVITY;

/// A written index, ready to be searched. Keys are chunk identifiers.
pub(crate) struct Graph {
    bytes: OwnedBytes,
    head: Head,
    /// How many levels above the lowest the nodes before each have, and at the end, all.
    levels_before: Vec<u32>,
    /// Level of the landmarks; 0 if the graph is small, or has no more levels.
    landmark_level: usize,
    landmarks: Vec<u32>,
    /// The landmarks' vectors, one after the other.
    landmark_rows: Vec<u8>,
    /// Nodes that no way leads to, and their vectors.
    strays: Vec<u32>,
    stray_rows: Vec<u8>,
    /// Chunks in order with their slots, once they are asked for.
    slots: OnceLock<Vec<(i64, u32)>>,
    /// Nodes that a search keeps in view.
    breadth: usize,
}

/// A node and its product with a query: the greater, the nearer; of equals the earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Near {
    product: i32,
    slot: Reverse<u32>,
}

/// Slots that a search has met.
struct Met {
    entries: usize,
    bits: Vec<u64>,
}

impl Met {
    fn none(entries: usize) -> Self {
        Self { entries, bits: vec![0; entries.div_ceil(64)] }
    }

    /// True if it had not been met; false, too, for what is no slot.
    fn meet(&mut self, slot: u32) -> bool {
        if slot as usize >= self.entries {
            return false;
        }
        let (word, bit) = (&mut self.bits[slot as usize / 64], 1 << (slot % 64));
        let new = *word & bit == 0;
        *word |= bit;
        new
    }
}

impl Graph {
    /// Checks every length and link, and takes the bytes.
    pub(crate) fn from_bytes(bytes: Vec<u8>, expected: &Expected) -> Result<Self, String> {
        ann_file::check(&bytes, expected)?;
        Self::open(OwnedBytes::new(bytes), expected)
    }

    /// Maps a file that this machine wrote and nobody changed since.
    pub(crate) fn map(folder: &Path, name: &str, expected: &Expected) -> Result<Self, String> {
        let files = MmapDirectory::open(folder).map_err(|error| error.to_string())?;
        let file = files.open_read(Path::new(name)).map_err(|error| error.to_string())?;
        let bytes = file.read_bytes().map_err(|error| error.to_string())?;
        Self::open(bytes, expected)
    }

    /// Takes bytes of which only the lengths are checked, as [`Graph::map`] does.
    pub(crate) fn unchecked(bytes: Vec<u8>, expected: &Expected) -> Result<Self, String> {
        Self::open(OwnedBytes::new(bytes), expected)
    }

    fn open(bytes: OwnedBytes, expected: &Expected) -> Result<Self, String> {
        let head = ann_file::head(&bytes, expected)?;
        let mut levels_before = Vec::with_capacity(head.entries + 1);
        let (mut above, mut of_level) = (0u32, Vec::new());
        for slot in 0..head.entries {
            levels_before.push(above);
            let level = head.level(&bytes, slot)?;
            above = above.saturating_add(level as u32);
            if of_level.len() <= level {
                of_level.resize(level + 1, 0);
            }
            of_level[..=level].iter_mut().for_each(|count| *count += 1);
        }
        levels_before.push(above);
        let length = head.nodes + head.entries * (NODE_HEAD_BYTES + LOWEST_BYTES) + above as usize * UPPER_BYTES;
        if bytes.len() != length {
            return Err("it has another length than its graph".to_owned());
        }
        let landmark_level = of_level.iter().position(|&count| count <= MOST_LANDMARKS).unwrap_or_default();
        let mut graph = Self {
            bytes,
            head,
            levels_before,
            landmark_level,
            landmarks: Vec::new(),
            landmark_rows: Vec::new(),
            strays: Vec::new(),
            stray_rows: Vec::new(),
            slots: OnceLock::new(),
            breadth: EXPANSION_SEARCH,
        };
        // A graph of few nodes is all landmarks; one whose levels end early begins at its entry.
        graph.landmarks = (0..graph.head.entries as u32).filter(|&slot| graph.level(slot) >= landmark_level).collect();
        if graph.landmarks.len() > MOST_LANDMARKS {
            graph.landmarks = vec![graph.head.entry];
            graph.landmark_level = graph.level(graph.head.entry);
        }
        graph.landmark_rows = graph.rows_of(&graph.landmarks);
        Ok(graph)
    }

    /// Compares these nodes, which no way leads to, in every search from here on.
    pub(crate) fn set_strays(&mut self, strays: &[u32]) {
        self.strays = strays.iter().copied().filter(|&slot| (slot as usize) < self.head.entries).collect();
        self.stray_rows = self.rows_of(&self.strays);
    }

    fn rows_of(&self, slots: &[u32]) -> Vec<u8> {
        slots.iter().map(|&slot| self.row(slot)).collect::<Vec<&[u8]>>().concat()
    }

    /// Keeps so many nodes in view from here on.
    pub(crate) fn set_breadth(&mut self, breadth: usize) {
        self.breadth = breadth.max(EXPANSION_SEARCH);
    }

    pub(crate) fn entries(&self) -> usize {
        self.head.entries
    }

    fn rows(&self) -> &[u8] {
        self.bytes.get(self.head.rows.clone()).unwrap_or_default()
    }

    /// The components of the node's vector, as the file has them.
    pub(crate) fn row(&self, slot: u32) -> &[u8] {
        let (dim, at) = (self.head.dim, slot as usize);
        self.rows().get(at * dim..(at + 1) * dim).unwrap_or_default()
    }

    fn level(&self, slot: u32) -> usize {
        match self.levels_before.get(slot as usize..slot as usize + 2) {
            Some(&[before, after]) => (after - before) as usize,
            _ => 0,
        }
    }

    fn node(&self, slot: u32) -> usize {
        let above = self.levels_before.get(slot as usize).map_or(0, |&above| above as usize);
        self.head.nodes + slot as usize * (NODE_HEAD_BYTES + LOWEST_BYTES) + above * UPPER_BYTES
    }

    fn chunk(&self, slot: u32) -> i64 {
        let at = self.node(slot);
        let key = self.bytes.get(at..at + 8).and_then(|key| key.try_into().ok());
        key.map_or(0, i64::from_le_bytes)
    }

    /// Where the node's links of a level lead.
    fn links(&self, slot: u32, level: usize) -> impl Iterator<Item = u32> {
        let (above, room) = if level == 0 { (0, 2 * CONNECTIVITY) } else { (LOWEST_BYTES, CONNECTIVITY) };
        let at = self.node(slot) + NODE_HEAD_BYTES + above + level.saturating_sub(1) * UPPER_BYTES;
        let there = if level <= self.level(slot) { self.bytes.get(at..at + 4 + 4 * room) } else { None };
        let (words, _) = there.unwrap_or_default().as_chunks();
        let mut words = words.iter().map(|&word| u32::from_le_bytes(word));
        let count = words.next().map_or(0, |count| (count as usize).min(room));
        words.take(count)
    }

    /// The nodes that no way leads to, over links of any level, from the graph's entry.
    pub(crate) fn find_strays(&self) -> Vec<u32> {
        let mut met = Met::none(self.head.entries);
        met.meet(self.head.entry);
        let mut open = vec![self.head.entry];
        while let Some(slot) = open.pop() {
            for level in 0..=self.level(slot) {
                open.extend(self.links(slot, level).filter(|&next| met.meet(next)));
            }
        }
        (0..self.head.entries as u32).filter(|&slot| met.meet(slot)).collect()
    }

    /// The nearest chunks that `admits` lets through, nearest first by bytes.
    pub(crate) fn search(&self, query: &[f32], count: usize, admits: &dyn Fn(i64) -> bool) -> Vec<i64> {
        self.search_bytes(&quantised(query), count, admits)
    }

    /// The same for a query of bytes.
    pub(crate) fn search_bytes(&self, query: &[i8], count: usize, admits: &dyn Fn(i64) -> bool) -> Vec<i64> {
        let mut from = self.entrances(query);
        from.extend(compared(query, &self.strays, &self.stray_rows));
        let nearest = self.descended(query, &from, 0, self.breadth.max(count), admits);
        nearest.iter().take(count).map(|near| self.chunk(near.slot.0)).collect()
    }

    /// The nodes that a search of the lowest level begins at.
    fn entrances(&self, query: &[i8]) -> Vec<Near> {
        let mut nearest = compared(query, &self.landmarks, &self.landmark_rows);
        if nearest.len() > BREADTH_ABOVE {
            nearest.select_nth_unstable_by_key(BREADTH_ABOVE, |&near| Reverse(near));
            nearest.truncate(BREADTH_ABOVE);
        }
        for level in (1..self.landmark_level).rev() {
            nearest = self.descended(query, &nearest, level, BREADTH_ABOVE, &|_| true);
        }
        nearest
    }

    /// The nearest `breadth` nodes that are admitted, best first, of those that links of `level` lead to from `from`; it ends
    /// when no open node is nearer than the worst of them.
    fn descended(
        &self,
        query: &[i8],
        from: &[Near],
        level: usize,
        breadth: usize,
        admits: &dyn Fn(i64) -> bool,
    ) -> Vec<Near> {
        let isa = Isa::detect();
        let mut met = Met::none(self.head.entries);
        let (mut open, mut best) = (BinaryHeap::new(), BinaryHeap::with_capacity(breadth + 1));
        let (mut slots, mut products) = (Vec::new(), Vec::new());
        let enter = |best: &mut BinaryHeap<Reverse<Near>>, near: Near| {
            if admits(self.chunk(near.slot.0)) {
                best.push(Reverse(near));
                if best.len() > breadth {
                    best.pop();
                }
            }
        };
        for &near in from.iter().filter(|near| met.meet(near.slot.0)) {
            open.push(near);
            enter(&mut best, near);
        }
        let out = |best: &BinaryHeap<Reverse<Near>>, near: Near| {
            best.len() >= breadth && best.peek().is_some_and(|worst| near < worst.0)
        };
        while let Some(near) = open.pop() {
            if out(&best, near) {
                break;
            }
            slots.clear();
            slots.extend(self.links(near.slot.0, level).filter(|&next| met.meet(next)));
            byte_dots(isa, query, self.rows(), &slots, &mut products);
            for (&slot, &product) in slots.iter().zip(&products) {
                let near = Near { product, slot: Reverse(slot) };
                if !out(&best, near) {
                    open.push(near);
                    enter(&mut best, near);
                }
            }
        }
        best.into_sorted_vec().into_iter().map(|Reverse(near)| near).collect()
    }

    fn slots(&self) -> &[(i64, u32)] {
        self.slots.get_or_init(|| {
            let mut slots: Vec<(i64, u32)> =
                (0..self.head.entries as u32).map(|slot| (self.chunk(slot), slot)).collect();
            slots.sort();
            slots
        })
    }

    /// True if `chunk` is in it.
    pub(crate) fn contains(&self, chunk: i64) -> bool {
        self.slots().binary_search_by_key(&chunk, |&(chunk, _)| chunk).is_ok()
    }

    /// The `count` nearest of `chunks`, which ascend, by bytes, each compared; those that are not in the index are left out.
    /// Many are shared among the processors.
    pub(crate) fn nearest_of(&self, query: &[f32], count: usize, chunks: &[i64]) -> Vec<i64> {
        let query = quantised(query);
        // Both ascend: the next is looked for from the last on, in steps that double.
        let mut rest = self.slots();
        let mut slots = Vec::with_capacity(chunks.len());
        for &chunk in chunks {
            let mut step = 1;
            while rest.get(step).is_some_and(|&(other, _)| other < chunk) {
                step *= 2;
            }
            let near = &rest[step / 2..(step + 1).min(rest.len())];
            let at = step / 2 + near.partition_point(|&(other, _)| other < chunk);
            rest = &rest[at.min(rest.len())..];
            slots.extend(rest.first().filter(|&&(other, _)| other == chunk).map(|&(_, slot)| slot));
        }
        let tops = shared(&slots, |share| {
            let (mut products, mut top) = (Vec::new(), TopK::new(count));
            byte_dots(Isa::detect(), &query, self.rows(), share, &mut products);
            self.push(&mut top, share, &products);
            vec![top]
        });
        merged(tops, count).pop().unwrap_or_default()
    }

    /// For each of `queries` the `count` nearest of all, by bytes; every vector is read once.
    pub(crate) fn nearest(&self, queries: &[Vec<i8>], count: usize) -> Vec<Vec<i64>> {
        let slots: Vec<u32> = (0..self.head.entries as u32).collect();
        let tops = shared(&slots, |share| {
            let mut tops: Vec<TopK> = queries.iter().map(|_| TopK::new(count)).collect();
            let mut products = Vec::new();
            for rows in share.chunks(TOGETHER) {
                for (query, top) in queries.iter().zip(&mut tops) {
                    byte_dots(Isa::detect(), query, self.rows(), rows, &mut products);
                    self.push(top, rows, &products);
                }
            }
            tops
        });
        merged(tops, count)
    }

    fn push(&self, top: &mut TopK, slots: &[u32], products: &[i32]) {
        for (&slot, &product) in slots.iter().zip(products) {
            let score = product as f32;
            if top.threshold().is_none_or(|threshold| score >= threshold) {
                top.push(Hit { chunk: self.chunk(slot), score });
            }
        }
    }
}

/// One list of rankings of several, the first with the first.
fn merged(lists: Vec<Vec<TopK>>, count: usize) -> Vec<Vec<i64>> {
    let rankings = lists.first().map_or(0, Vec::len);
    let mut merged: Vec<TopK> = (0..rankings).map(|_| TopK::new(count)).collect();
    for list in lists {
        for (top, part) in merged.iter_mut().zip(list) {
            part.into_hits().into_iter().for_each(|hit| top.push(hit));
        }
    }
    merged.into_iter().map(|top| top.into_hits().into_iter().map(|hit| hit.chunk).collect()).collect()
}

/// The nodes of `slots`, whose vectors are `rows`, with their products.
fn compared(query: &[i8], slots: &[u32], rows: &[u8]) -> Vec<Near> {
    let mut products = Vec::new();
    let all: Vec<u32> = (0..slots.len() as u32).collect();
    byte_dots(Isa::detect(), query, rows, &all, &mut products);
    slots.iter().zip(products).map(|(&slot, product)| Near { product, slot: Reverse(slot) }).collect()
}

/// What `work` makes of each part of `slots`: one for each processor, if they are many.
fn shared<T: Send>(slots: &[u32], work: impl Fn(&[u32]) -> T + Sync) -> Vec<T> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let share = slots.len().div_ceil(processors).max(SHARE);
    std::thread::scope(|scope| {
        let (work, mut shares) = (&work, slots.chunks(share));
        let own = shares.next().unwrap_or_default();
        let others: Vec<_> = shares.map(|share| scope.spawn(move || work(share))).collect();
        let mut made = vec![work(own)];
        // A thread that panicked passes its panic on.
        made.extend(
            others.into_iter().map(|other| other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))),
        );
        made
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::HashSet;

    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;
    use crate::ann::{GraphBuilder, expected};

    pub(crate) const DIM: usize = 8;

    fn unit(vector: Vec<f32>) -> Vec<f32> {
        let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        vector.into_iter().map(|x| x / length).collect()
    }

    pub(crate) fn vectors(count: usize) -> Vec<Vec<f32>> {
        let mut random = StdRng::seed_from_u64(5);
        let mut vector = || -> Vec<f32> { (0..DIM).map(|_| random.random_range(-1.0..1.0f32)).collect() };
        (0..count).map(|_| unit(vector())).collect()
    }

    pub(crate) fn add(builder: &GraphBuilder, vectors: &[Vec<f32>], first: i64) {
        let chunks: Vec<i64> = (first..first + vectors.len() as i64).collect();
        builder.reserve(chunks.len(), 2).expect("room");
        builder.add_all(&chunks, &vectors.concat(), 2).expect("added");
    }

    pub(crate) fn built(count: usize) -> Vec<u8> {
        let builder = GraphBuilder::new(DIM).expect("index");
        add(&builder, &vectors(count), 1);
        builder.to_bytes().expect("bytes")
    }

    fn graph(count: usize) -> Graph {
        Graph::from_bytes(built(count), &expected(DIM, count, count as i64)).expect("whole")
    }

    #[test]
    fn f33_removed_entries_are_passed_over_and_enough_others_found() {
        let graph = graph(300);
        let removed: HashSet<i64> = (1..=300).filter(|chunk| chunk % 10 != 0).collect();
        let found = graph.search(&vectors(1)[0], 30, &|chunk| !removed.contains(&chunk));
        assert_eq!(found.len(), 30);
        assert!(found.iter().all(|chunk| chunk % 10 == 0), "{found:?}");
    }

    #[test]
    fn comparing_one_by_one_finds_the_nearest_of_those_that_are_there() {
        let (graph, all) = (graph(9_000), vectors(9_003));
        let by_product = |query: &[f32], chunks: &[i64]| {
            let query = quantised(query);
            let mut found: Vec<(i64, i64)> = chunks
                .iter()
                .filter(|&&chunk| chunk <= 9_000)
                .map(|&chunk| {
                    let row = quantised(&all[chunk as usize - 1]);
                    (-row.iter().zip(&query).map(|(&a, &b)| i64::from(a) * i64::from(b)).sum::<i64>(), chunk)
                })
                .collect();
            found.sort_unstable();
            found.into_iter().take(7).map(|(_, chunk)| chunk).collect::<Vec<i64>>()
        };
        for (chosen, step) in [(1, 1), (2, 3), (17, 61), (1, 4_000), (9_001, 1)] {
            let chunks: Vec<i64> = (chosen..=9_003).step_by(step).collect();
            assert_eq!(graph.nearest_of(&all[9_001], 7, &chunks), by_product(&all[9_001], &chunks), "{chosen}, {step}");
        }
        let queries = [quantised(&all[9_001]), quantised(&all[77])];
        let everything: Vec<i64> = (1..=9_000).collect();
        let wanted = [by_product(&all[9_001], &everything), by_product(&all[77], &everything)];
        assert_eq!(graph.nearest(&queries, 7), wanted);
        assert!(graph.contains(9_000) && !graph.contains(9_001) && !graph.contains(0));
    }

    /// Groups that came one after the other, and so far apart that hardly a link leads from one to another.
    #[test]
    fn a_search_begins_in_the_group_where_the_nearest_are() {
        const GROUPS: usize = 150;
        const EACH: usize = 130;
        const WIDE: usize = 96;
        let mut random = StdRng::seed_from_u64(9);
        let mut normal = || (0..12).map(|_| random.random_range(-0.5..0.5f32)).sum::<f32>();
        let centres: Vec<Vec<f32>> = (0..GROUPS).map(|_| (0..WIDE).map(|_| normal()).collect()).collect();
        let mut near = |group: usize| unit(centres[group].iter().map(|x| x + 0.4 * normal()).collect());
        let all: Vec<Vec<f32>> = (0..GROUPS * EACH).map(|at| near(at / EACH)).collect();
        let queries: Vec<Vec<f32>> = (0..3 * GROUPS).map(|at| near(at % GROUPS)).collect();
        let builder = GraphBuilder::new(WIDE).expect("index");
        add(&builder, &all, 1);
        let (bytes, entries) = (builder.to_bytes().expect("bytes"), GROUPS * EACH);
        let graph = Graph::from_bytes(bytes, &expected(WIDE, entries, entries as i64)).expect("whole");
        let group = |chunk: i64| (chunk as usize - 1) / EACH;
        let missed = (0..queries.len()).filter(|&at| {
            let entrances = graph.entrances(&quantised(&queries[at]));
            entrances.iter().all(|near| group(graph.chunk(near.slot.0)) != at % GROUPS)
        });
        assert_eq!(missed.count(), 0);
    }

    #[test]
    fn nodes_that_no_link_leads_to_are_told() {
        let bytes = built(300);
        let before = Graph::from_bytes(bytes.clone(), &expected(DIM, 300, 300)).expect("whole");
        // All links of the lowest level lead nowhere: what is left are nodes of higher levels.
        let mut cut = bytes;
        for slot in 0..300 {
            let at = before.node(slot) + NODE_HEAD_BYTES;
            cut[at..at + 4].copy_from_slice(&[0; 4]);
        }
        let on_lowest = (0..300).filter(|&slot| before.level(slot) == 0).count();
        let strays = Graph::from_bytes(cut, &expected(DIM, 300, 300)).expect("whole").find_strays();
        assert!(strays.len() >= on_lowest - 1 && before.find_strays().len() < 10, "{}", strays.len());
    }
}
