//! JSON to lines: each value behind the path that leads to it.

use serde_json::Value;

use crate::draft::Draft;

/// Writes `value` as lines of `path: value`.
pub(crate) fn write(value: &Value, draft: &mut Draft) {
    lines(value, &mut String::new(), draft);
}

/// serde_json reads no deeper than 128 values, so this goes no deeper.
fn lines(value: &Value, path: &mut String, draft: &mut Draft) {
    if draft.is_full() {
        return;
    }
    let written = |path: &str, words: &str| if path.is_empty() { words.to_owned() } else { format!("{path}: {words}") };
    match value {
        Value::Null => {}
        Value::Bool(truth) => draft.line(&written(path, &truth.to_string())),
        Value::Number(number) => draft.line(&written(path, &number.to_string())),
        Value::String(text) => draft.line(&written(path, text)),
        Value::Array(values) if values.iter().all(|value| !value.is_object() && !value.is_array()) => {
            let words: Vec<String> = values.iter().map(plain).filter(|words| !words.is_empty()).collect();
            draft.line(&written(path, &words.join(", ")));
        }
        Value::Array(values) => {
            for value in values {
                draft.gap();
                lines(value, path, draft);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                let length = path.len();
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
                lines(value, path, draft);
                path.truncate(length);
            }
        }
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m33_values_stand_behind_their_paths() {
        let value = serde_json::json!({"a": {"b": 1, "c": ["x", 2, null]}, "d": [{"e": true}, {"e": "f"}], "g": null});
        let mut draft = Draft::new(1000);
        write(&value, &mut draft);
        assert_eq!(draft.text(), "a.b: 1\na.c: x, 2\n\nd.e: true\n\nd.e: f");
    }
}
