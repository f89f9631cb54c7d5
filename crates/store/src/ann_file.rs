//! Where the parts of a usearch file lie, and a check of it before it is searched or the C++ library sees it. The library believes what a file says about its own lengths and
//! links; here every one of them is compared with the bytes there are, so that no read or write can go out of bounds.
//!
//! Layout (usearch 2.x, little-endian): rows and bytes per row (2 × u32), the vectors, a head of 64 bytes, the size and
//! shape of the graph (5 × u64), each node's level (i16), and the nodes: key (u64), level (i16), and for each level from 0
//! a count and room for that many slots (u32).

use std::collections::HashSet;
use std::ops::Range;

const MAGIC: &[u8] = b"usearch";
const VERSION_MAJOR: u16 = 2;
const HEAD_BYTES: usize = 64;
/// The library's number for cosine.
const METRIC_COSINE: u8 = b'c';
/// The library's number for 64-bit unsigned keys.
const KIND_KEY: u8 = 14;
/// The library's number for 32-bit unsigned slots.
const KIND_SLOT: u8 = 15;
pub(crate) const NODE_HEAD_BYTES: usize = 10;
/// Levels are drawn from a geometric distribution: a real file has not more than about ten.
const MAX_LEVEL: i16 = 64;

/// What the database says the file must hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    pub(crate) dim: usize,
    pub(crate) entries: usize,
    pub(crate) last_chunk: i64,
    pub(crate) connectivity: usize,
    pub(crate) scalar_kind: u8,
    pub(crate) scalar_bytes: usize,
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.bytes.split_at_checked(length).ok_or("it is cut short")?;
        self.bytes = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (taken, rest) = self.bytes.split_first_chunk().ok_or("it is cut short")?;
        self.bytes = rest;
        Ok(*taken)
    }

    fn u16(&mut self) -> Result<u16, String> {
        self.array().map(u16::from_le_bytes)
    }

    fn i16(&mut self) -> Result<i16, String> {
        self.array().map(i16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, String> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, String> {
        self.array().map(u64::from_le_bytes)
    }
}

fn require(condition: bool, otherwise: &str) -> Result<(), String> {
    if condition { Ok(()) } else { Err(otherwise.to_owned()) }
}

/// Where a file's parts lie.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) entries: usize,
    pub(crate) dim: usize,
    /// Bytes of the vectors, one after the other.
    pub(crate) rows: Range<usize>,
    /// Slot of the node that the library's searches begin at.
    pub(crate) entry: u32,
    max_level: u64,
    levels: usize,
    /// Where the nodes begin.
    pub(crate) nodes: usize,
}

impl Head {
    /// Levels above the lowest that a node has.
    pub(crate) fn level(&self, bytes: &[u8], slot: usize) -> Result<usize, String> {
        let at = self.levels + 2 * slot;
        let level = Reader { bytes: bytes.get(at..at + 2).unwrap_or_default() }.i16()?;
        require((0..=MAX_LEVEL).contains(&level), "a node has an impossible level")?;
        Ok(usize::from(level.unsigned_abs()))
    }
}

/// Fails with what is wrong unless what stands before the levels and nodes of `bytes` is as expected.
pub(crate) fn head(bytes: &[u8], expected: &Expected) -> Result<Head, String> {
    let mut reader = Reader { bytes };
    let entries = expected.entries;
    require(entries > 0, "it should be empty")?;
    require(reader.u32()? as usize == entries, "it holds another number of vectors")?;
    let row = expected.dim * expected.scalar_bytes;
    require(reader.u32()? as usize == row, "its vectors have another length")?;
    let rows = entries.checked_mul(row).ok_or("its size overflows")?;
    reader.take(rows)?;
    check_head(Reader { bytes: reader.take(HEAD_BYTES)? }, expected)?;

    require(reader.u64()? == entries as u64, "its graph has another number of nodes")?;
    let (connectivity, connectivity_base) = (reader.u64()?, reader.u64()?);
    require(connectivity == expected.connectivity as u64, "its graph has another connectivity")?;
    require(connectivity_base == 2 * connectivity, "its graph has another connectivity")?;
    let (max_level, entry_slot) = (reader.u64()?, reader.u64()?);
    let is_node = |slot: &u32| (*slot as usize) < entries;
    let entry = u32::try_from(entry_slot).ok().filter(is_node).ok_or("its entry is no node")?;
    let levels = bytes.len() - reader.bytes.len();
    reader.take(2 * entries)?;
    let nodes = bytes.len() - reader.bytes.len();
    Ok(Head { entries, dim: row, rows: 8..8 + rows, entry, max_level, levels, nodes })
}

/// Fails with what is wrong unless `bytes` are a whole index as expected.
pub(crate) fn check(bytes: &[u8], expected: &Expected) -> Result<(), String> {
    let head = head(bytes, expected)?;
    let levels = (0..head.entries).map(|slot| head.level(bytes, slot)).collect::<Result<Vec<_>, _>>()?;
    require(head.max_level == levels[head.entry as usize] as u64, "its entry is not on the highest level")?;
    let mut reader = Reader { bytes: bytes.get(head.nodes..).unwrap_or_default() };
    check_nodes(&mut reader, &levels, expected)?;
    require(reader.bytes.is_empty(), "something follows its end")
}

fn check_head(mut head: Reader<'_>, expected: &Expected) -> Result<(), String> {
    require(head.take(MAGIC.len())? == MAGIC, "it is no usearch file")?;
    require(head.u16()? == VERSION_MAJOR, "it has another format")?;
    head.take(4)?;
    require(head.array()? == [METRIC_COSINE], "it has another metric")?;
    require(head.array()? == [expected.scalar_kind], "it has another kind of numbers")?;
    require(head.array()? == [KIND_KEY], "it has another kind of keys")?;
    require(head.array()? == [KIND_SLOT], "it has another kind of slots")?;
    require(head.u64()? == expected.entries as u64, "it holds another number of vectors")?;
    require(head.u64()? == 0, "it has removed entries")?;
    require(head.u64()? == expected.dim as u64, "it has another dimension")?;
    require(head.array()? == [0], "it allows several vectors for a key")
}

fn check_nodes(reader: &mut Reader<'_>, levels: &[usize], expected: &Expected) -> Result<(), String> {
    let mut keys = HashSet::with_capacity(levels.len());
    for &level in levels {
        let mut node = Reader { bytes: reader.take(NODE_HEAD_BYTES)? };
        let key = node.u64()?;
        require(key >= 1 && key <= expected.last_chunk.unsigned_abs(), "a key is no chunk of its time")?;
        require(keys.insert(key), "a key is there twice")?;
        require(usize::try_from(node.i16()?) == Ok(level), "a node has two levels")?;
        for at in 0..=level {
            let room = if at == 0 { 2 * expected.connectivity } else { expected.connectivity };
            let mut neighbours = Reader { bytes: reader.take(4 + 4 * room)? };
            let count = neighbours.u32()? as usize;
            require(count <= room, "a node has too many neighbours")?;
            for _ in 0..count {
                let slot = neighbours.u32()? as usize;
                // A neighbour is read at the level it is linked on, so it must reach that high.
                require(levels.get(slot).is_some_and(|&other| other >= at), "a link leads nowhere")?;
            }
        }
    }
    Ok(())
}
