//! Measures an ONNX file before it is decoded. Decoded, an empty node takes sixty times the two bytes that it has in the
//! file, so what is no numbers of weights is held against a limit; numbers take what they take.
//!
//! Encoding: <https://protobuf.dev/programming-guides/encoding/>. Only lengths are followed, three messages deep, whatever
//! the file says, so that neither memory nor stack can run out here.

/// Fields that are followed: the model's graph, the graph's tensors, and their numbers.
const GRAPH: u64 = 7;
const INITIALIZER: u64 = 5;
const NUMBERS: [u64; 2] = [4, 9];

/// Bytes of the file that are no numbers of its tensors.
pub(super) fn description_bytes(file: &[u8]) -> Result<u64, String> {
    let mut numbers = 0;
    each_message(file, &mut |field, graph| {
        if field != GRAPH {
            return Ok(());
        }
        each_message(graph, &mut |field, tensor| {
            if field != INITIALIZER {
                return Ok(());
            }
            each_message(tensor, &mut |field, value| {
                if NUMBERS.contains(&field) {
                    numbers += value.len() as u64;
                }
                Ok(())
            })
        })
    })?;
    Ok((file.len() as u64).saturating_sub(numbers))
}

/// What is told of each message inside another: the number of its field, and its bytes.
type OnMessage<'f> = dyn FnMut(u64, &[u8]) -> Result<(), String> + 'f;

/// Calls `found` for each field of a message that has a length, with its number.
fn each_message(mut message: &[u8], found: &mut OnMessage<'_>) -> Result<(), String> {
    let all = message.len();
    while !message.is_empty() {
        let at = all - message.len();
        let cut_short = || format!("a field at byte {at} of a message of {all} bytes was cut short");
        let key = variable(&mut message).ok_or_else(cut_short)?;
        let skipped = match key & 7 {
            0 => variable(&mut message).map(|_| ()),
            1 => take(&mut message, 8).map(|_| ()),
            5 => take(&mut message, 4).map(|_| ()),
            2 => {
                let length = variable(&mut message).ok_or_else(cut_short)?;
                let value = take(&mut message, length).ok_or_else(cut_short)?;
                found(key >> 3, value)?;
                Some(())
            }
            kind => return Err(format!("a field at byte {at} is of the kind {kind}, which ONNX does not use")),
        };
        skipped.ok_or_else(cut_short)?;
    }
    Ok(())
}

fn take<'b>(rest: &mut &'b [u8], length: u64) -> Option<&'b [u8]> {
    let (taken, after) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    *rest = after;
    Some(taken)
}

/// A number of seven bits a byte, the lowest first.
fn variable(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for place in 0..10 {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        number |= u64::from(byte & 0x7F).checked_shl(7 * place)?;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        assert!(bytes.len() < 128);
        [&[number << 3 | 2, bytes.len() as u8], bytes].concat()
    }

    #[test]
    fn f14_numbers_of_tensors_are_told_from_all_else() {
        let tensor = [field(8, b"name"), field(9, &[7; 40]), field(4, &[7; 20])].concat();
        let graph = [field(1, &field(1, b"input")), field(5, &tensor[..])].concat();
        let file = [vec![8, 150, 1], field(7, &graph)].concat();
        assert_eq!(description_bytes(&file), Ok(file.len() as u64 - 60));
        // The same bytes elsewhere are no numbers of a tensor.
        assert_eq!(description_bytes(&field(9, &[7; 40])), Ok(42));
    }

    #[test]
    fn f14_a_file_that_lies_about_lengths_is_refused() {
        for bytes in
            [&[0x3A, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F][..], &[0x3A], &[0x80; 12], &[0x09, 1], &[0x0B], &[0x3A, 2, 0x2A, 9]]
        {
            assert!(description_bytes(bytes).is_err(), "{bytes:?}");
        }
    }
}
