//! Answers scored, and the figures of many as one row.

use anchorite::core::Judged;
use anchorite_eval::{Grades, Interval, Query, Table, contains_answer, contains_parts, mean_with_interval, token_f1};
use serde::{Deserialize, Serialize};

/// A question asked, as it is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Asked {
    pub(crate) answer: String,
    pub(crate) declined: bool,
    pub(crate) confidence: f32,
    /// What the judges said, for whoever wants to weigh it anew; and what is known of the question.
    #[serde(default)]
    pub(crate) judged: Judged,
    #[serde(default)]
    pub(crate) answerable: bool,
    #[serde(default)]
    pub(crate) right: Option<bool>,
    /// Documents cited, and documents that were graded useful.
    pub(crate) cited: Vec<String>,
    pub(crate) useful: Vec<String>,
    pub(crate) stopped_by: Option<String>,
    pub(crate) rounds: u64,
    pub(crate) generator_calls: u64,
    pub(crate) tokens_read: u64,
    pub(crate) tokens_written: u64,
    pub(crate) seconds: f64,
}

impl Asked {
    /// True if an answer was given and has what counts as right; `None` where no answer is known.
    pub(crate) fn is_right(&self, query: &Query) -> Option<bool> {
        let (answers, parts) = (query.answers(), query.answer_parts());
        if !parts.is_empty() {
            return Some(!self.declined && contains_parts(&self.answer, &parts));
        }
        (!answers.is_empty()).then(|| !self.declined && contains_answer(&self.answer, &answers))
    }
}

/// Figures of one set and graph. Shares are 0 … 1; `None` where nothing of the kind was asked.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figures {
    pub(crate) questions: usize,
    pub(crate) answerable: usize,
    /// Of the answerable questions whose answers are known: the answer has one of them.
    pub(crate) right: Option<Interval>,
    /// Token F1 of the same, 0 for those declined.
    pub(crate) f1: Option<f64>,
    /// Of the answerable: declined all the same.
    pub(crate) declined_wrongly: Option<f64>,
    /// Of the unanswerable: declined.
    pub(crate) declined_rightly: Option<f64>,
    /// Of the documents cited in answers to answerable questions with judgements: relevant ones.
    pub(crate) citation_precision: Option<f64>,
    /// Of the relevant documents of those questions: cited ones.
    pub(crate) citation_recall: Option<f64>,
    /// Of the questions with two or more relevant documents: all of them cited or used.
    pub(crate) all_gold_used: Option<f64>,
    pub(crate) rounds: f64,
    pub(crate) generator_calls: f64,
    pub(crate) tokens_read: f64,
    pub(crate) tokens_written: f64,
    pub(crate) seconds: f64,
    pub(crate) most_seconds: f64,
    /// Runs that a cap ended.
    pub(crate) stopped: usize,
}

impl Figures {
    pub(crate) fn of<'a>(asked: impl Iterator<Item = (&'a Query, &'a Asked, Option<&'a Grades>)>) -> Self {
        let all: Vec<(&Query, &Asked, Option<&Grades>)> = asked.collect();
        let (answerable, unanswerable): (Vec<_>, Vec<_>) =
            all.iter().copied().partition(|(query, ..)| query.is_answerable());
        let right: Vec<f64> = answerable
            .iter()
            .filter_map(|(query, asked, _)| asked.is_right(query))
            .map(|right| if right { 1.0 } else { 0.0 })
            .collect();
        let f1 =
            answerable.iter().filter(|(query, asked, _)| asked.is_right(query).is_some()).map(|(query, asked, _)| {
                let answers: Vec<String> = query.answers().into_iter().chain(query.answer_parts().concat()).collect();
                if asked.declined { 0.0 } else { token_f1(&asked.answer, &answers) }
            });
        let declined = |asked: &[(&Query, &Asked, Option<&Grades>)]| {
            mean(asked.iter().map(|(_, asked, _)| if asked.declined { 1.0 } else { 0.0 }))
        };
        let cited = || answerable.iter().filter_map(|(_, asked, gold)| gold.map(|gold| (asked, relevant(gold))));
        let found = |documents: &[String], gold: &[&String]| {
            documents.iter().filter(|document| gold.contains(document)).count() as f64
        };
        let share = |documents: &[String], gold: &[&String], of: usize| found(documents, gold) / of as f64;
        let of = |part: fn(&Asked) -> f64| mean(all.iter().map(|(_, asked, _)| part(asked))).unwrap_or_default();
        Self {
            questions: all.len(),
            answerable: answerable.len(),
            f1: mean(f1),
            right: (!right.is_empty()).then(|| mean_with_interval(&right)),
            declined_wrongly: declined(&answerable),
            declined_rightly: declined(&unanswerable),
            citation_precision: mean(
                cited()
                    .filter(|(asked, _)| !asked.cited.is_empty())
                    .map(|(asked, gold)| share(&asked.cited, &gold, asked.cited.len())),
            ),
            citation_recall: mean(cited().map(|(asked, gold)| share(&asked.cited, &gold, gold.len()))),
            all_gold_used: mean(cited().filter(|(_, gold)| gold.len() > 1).map(|(asked, gold)| {
                let used = |document: &&String| asked.cited.contains(document) || asked.useful.contains(document);
                if gold.iter().all(used) { 1.0 } else { 0.0 }
            })),
            rounds: of(|asked| asked.rounds as f64),
            generator_calls: of(|asked| asked.generator_calls as f64),
            tokens_read: of(|asked| asked.tokens_read as f64),
            tokens_written: of(|asked| asked.tokens_written as f64),
            seconds: of(|asked| asked.seconds),
            most_seconds: all.iter().map(|(_, asked, _)| asked.seconds).fold(0.0, f64::max),
            stopped: all.iter().filter(|(_, asked, _)| asked.stopped_by.is_some()).count(),
        }
    }
}

fn relevant(gold: &Grades) -> Vec<&String> {
    gold.iter().filter(|(_, grade)| **grade > 0).map(|(document, _)| document).collect()
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Rows of set, graph and figures.
pub(crate) fn table(rows: &[(&str, &str, &Figures)]) -> Table {
    let mut table = Table::new(&[
        "set",
        "graph",
        "questions",
        "right",
        "95 %",
        "F1",
        "declined wrongly",
        "declined rightly",
        "cited gold",
        "gold cited",
        "all gold used",
        "rounds",
        "calls",
        "s mean",
        "s most",
        "stopped",
    ]);
    let share = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.3}"));
    for (set, strategy, figures) in rows {
        table.row(vec![
            (*set).to_owned(),
            (*strategy).to_owned(),
            format!("{}+{}", figures.answerable, figures.questions - figures.answerable),
            share(figures.right.map(|right| right.mean)),
            figures.right.map_or(String::new(), |right| format!("{:.2}…{:.2}", right.low, right.high)),
            share(figures.f1),
            share(figures.declined_wrongly),
            share(figures.declined_rightly),
            share(figures.citation_precision),
            share(figures.citation_recall),
            share(figures.all_gold_used),
            format!("{:.2}", figures.rounds),
            format!("{:.1}", figures.generator_calls),
            format!("{:.1}", figures.seconds),
            format!("{:.1}", figures.most_seconds),
            figures.stopped.to_string(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn query(id: &str, fields: &serde_json::Value) -> Query {
        Query { id: id.to_owned(), text: "?".to_owned(), fields: fields.as_object().expect("an object").clone() }
    }

    fn asked(answer: &str, declined: bool, cited: &[&str]) -> Asked {
        Asked {
            answer: answer.to_owned(),
            declined,
            confidence: 0.5,
            judged: Judged::default(),
            answerable: true,
            right: None,
            cited: cited.iter().map(|&document| document.to_owned()).collect(),
            useful: vec!["b".to_owned()],
            stopped_by: None,
            rounds: 2,
            generator_calls: 3,
            tokens_read: 10,
            tokens_written: 5,
            seconds: 4.0,
        }
    }

    #[test]
    fn m41_right_declined_and_cited_are_counted_each_on_their_own_questions() {
        let known = json!({ "answers": ["Rome"], "answerable": true });
        let none = json!({ "answers": [], "answerable": false });
        let parts = json!({ "answers": [], "answer_parts": [["Rome"], ["Milan", "Milano"]] });
        let cases = [
            (query("right", &known), asked("It is Rome.", false, &["a", "x"])),
            (query("declined", &known), asked("I looked for Rome.", true, &[])),
            (query("unanswerable", &none), asked("I could not find this.", true, &[])),
            (query("answered", &none), asked("Paris.", false, &[])),
            (query("parts", &parts), asked("Rome and Milano.", false, &[])),
        ];
        let gold: Grades = [("a".to_owned(), 1), ("b".to_owned(), 2), ("c".to_owned(), 0)].into();
        let rows = cases.iter().map(|(query, asked)| (query, asked, (query.id == "right").then_some(&gold)));
        let figures = Figures::of(rows);
        assert_eq!((figures.questions, figures.answerable), (5, 3));
        assert!(
            (figures.right.expect("known answers").mean - 2.0 / 3.0).abs() < 1e-12,
            "what is declined is not right"
        );
        assert_eq!((figures.declined_wrongly, figures.declined_rightly), (Some(1.0 / 3.0), Some(0.5)));
        assert_eq!((figures.citation_precision, figures.citation_recall), (Some(0.5), Some(0.5)));
        assert_eq!(figures.all_gold_used, Some(1.0), "one is cited, the other was of use");
        assert_eq!((figures.rounds, figures.seconds, figures.stopped), (2.0, 4.0, 0));
        let text = table(&[("set", "simple", &figures)]).to_string();
        assert!(text.contains("3+2") && text.contains("0.667"), "{text}");
    }
}
