//! Checks a usearch file before the C++ library sees it. The library believes what a file says about its own lengths and
//! links; here every one of them is compared with the bytes there are, so that no read or write can go out of bounds.
//!
//! Layout (usearch 2.x, little-endian): rows and bytes per row (2 × u32), the vectors, a head of 64 bytes, the size and
//! shape of the graph (5 × u64), each node's level (i16), and the nodes: key (u64), level (i16), and for each level from 0
//! a count and room for that many slots (u32).

use std::collections::HashSet;

const MAGIC: &[u8] = b"usearch";
const VERSION_MAJOR: u16 = 2;
const HEAD_BYTES: usize = 64;
/// The library's number for cosine.
const METRIC_COSINE: u8 = b'c';
/// The library's number for 64-bit unsigned keys.
const KIND_KEY: u8 = 14;
/// The library's number for 32-bit unsigned slots.
const KIND_SLOT: u8 = 15;
const NODE_HEAD_BYTES: usize = 10;
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

/// Fails with what is wrong unless `bytes` are a whole index as expected.
pub(crate) fn check(bytes: &[u8], expected: &Expected) -> Result<(), String> {
    let mut reader = Reader { bytes };
    let entries = expected.entries;
    require(entries > 0, "it should be empty")?;
    require(reader.u32()? as usize == entries, "it holds another number of vectors")?;
    let row = expected.dim * expected.scalar_bytes;
    require(reader.u32()? as usize == row, "its vectors have another length")?;
    reader.take(entries.checked_mul(row).ok_or("its size overflows")?)?;
    check_head(Reader { bytes: reader.take(HEAD_BYTES)? }, expected)?;

    require(reader.u64()? == entries as u64, "its graph has another number of nodes")?;
    let (connectivity, connectivity_base) = (reader.u64()?, reader.u64()?);
    require(connectivity == expected.connectivity as u64, "its graph has another connectivity")?;
    require(connectivity_base == 2 * connectivity, "its graph has another connectivity")?;
    let (max_level, entry_slot) = (reader.u64()?, reader.u64()?);
    let entry_slot = usize::try_from(entry_slot).ok().filter(|&slot| slot < entries).ok_or("its entry is no node")?;

    let mut levels = Vec::with_capacity(entries);
    for _ in 0..entries {
        let level = reader.i16()?;
        require((0..=MAX_LEVEL).contains(&level), "a node has an impossible level")?;
        levels.push(level);
    }
    let highest = u64::from(levels[entry_slot].unsigned_abs());
    require(max_level == highest, "its entry is not on the highest level")?;
    check_nodes(&mut reader, &levels, expected)?;
    require(reader.bytes.is_empty(), "something follows its end")
}

/// The keys of the nodes that no way leads to from the entry, over links of any level. `bytes` must have passed [`check`], or
/// come from the library itself.
pub(crate) fn strays(bytes: &[u8], expected: &Expected) -> Result<Vec<i64>, String> {
    let mut reader = Reader { bytes };
    let entries = expected.entries;
    reader.take(8 + entries * expected.dim * expected.scalar_bytes + HEAD_BYTES + 8 + 16 + 8)?;
    let entry = usize::try_from(reader.u64()?).map_err(|error| error.to_string())?;
    let mut levels = Vec::with_capacity(entries);
    for _ in 0..entries {
        levels.push(reader.i16()?);
    }
    let mut keys = Vec::with_capacity(entries);
    // Links of all levels, one node's after the other's.
    let mut links: Vec<u32> = Vec::with_capacity(entries * 2 * expected.connectivity);
    let mut starts = Vec::with_capacity(entries + 1);
    for &level in &levels {
        keys.push(reader.u64()?.cast_signed());
        reader.i16()?;
        starts.push(links.len());
        for at in 0..=level {
            let room = if at == 0 { 2 * expected.connectivity } else { expected.connectivity };
            let count = reader.u32()? as usize;
            let mut slots = Reader { bytes: reader.take(4 * room)? };
            for _ in 0..count.min(room) {
                links.push(slots.u32()?);
            }
        }
    }
    starts.push(links.len());
    let mut reached = vec![false; entries];
    let mut open = Vec::new();
    if let Some(reached) = reached.get_mut(entry) {
        *reached = true;
        open.push(entry);
    }
    while let Some(slot) = open.pop() {
        for &next in &links[starts[slot]..starts[slot + 1]] {
            if let Some(reached) = reached.get_mut(next as usize).filter(|reached| !**reached) {
                *reached = true;
                open.push(next as usize);
            }
        }
    }
    Ok(keys.into_iter().zip(reached).filter(|(_, reached)| !reached).map(|(key, _)| key).collect())
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

fn check_nodes(reader: &mut Reader<'_>, levels: &[i16], expected: &Expected) -> Result<(), String> {
    let mut keys = HashSet::with_capacity(levels.len());
    for &level in levels {
        let mut node = Reader { bytes: reader.take(NODE_HEAD_BYTES)? };
        let key = node.u64()?;
        require(key >= 1 && key <= expected.last_chunk.unsigned_abs(), "a key is no chunk of its time")?;
        require(keys.insert(key), "a key is there twice")?;
        require(node.i16()? == level, "a node has two levels")?;
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
