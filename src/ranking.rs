//! The order of what a search found: fused scores, the cross-encoder's reading, and what the best passages name.
//!
//! A cross-encoder that replaces the order of fusion is better on questions and worse on phrases and abstracts, so both
//! count: a passage's place rests on `fused + TRUST · σ(logit / SMOOTHING)`. And documents name each other: what one of the
//! best passages calls by its title is looked at too, which is where the second step of a question often lies.
//! The first two constants were chosen on twelve retrieval sets (60 queries each), those of links on eight of them.

use std::time::{SystemTime, UNIX_EPOCH};

use anchorite_core::{Passage, Reranker, RetrieveError};
use anchorite_store::Snapshot;

/// What the cross-encoder's probability weighs beside a fused score, which is 0 … 1 too.
const TRUST: f32 = 2.0;

/// Divides logits: such models are surer than they are right.
const SMOOTHING: f32 = 3.0;

/// Best passages whose links are followed.
const LINKING: usize = 3;

/// Most links followed from a passage, the first ones.
const LINKS: usize = 8;

/// Share of a passage's score that it gives to what it names.
const LINK_SHARE: f32 = 0.3;

fn store(error: anchorite_store::StoreError) -> RetrieveError {
    RetrieveError::Store(Box::new(error))
}

/// Has `reranker` read the first `depth` of `passages` and orders them; what follows keeps its place behind them.
pub(crate) fn rank(
    reranker: &dyn Reranker,
    query: &str,
    passages: &mut [Passage],
    depth: usize,
) -> Result<(), RetrieveError> {
    let depth = passages.len().min(depth);
    let passages = &mut passages[..depth];
    read(reranker, query, passages)?;
    let by_logit = |a: &Passage, b: &Passage| b.scores.rerank.partial_cmp(&a.scores.rerank);
    let mut order: Vec<usize> = (0..passages.len()).collect();
    order.sort_by(|&a, &b| by_logit(&passages[a], &passages[b]).unwrap_or(std::cmp::Ordering::Equal));
    for (rank, index) in order.into_iter().enumerate() {
        passages[index].scores.rerank_rank = Some(rank + 1);
    }
    sort(passages);
    Ok(())
}

/// Most that age takes from a score: what is very old keeps the rest.
const MOST_LOST: f64 = 0.5;

const DAY: f64 = 86_400_000.0;

/// Weighs scores by age: what is `half_life` days old has lost half of what can be lost, twice as old three quarters. What
/// the cross-encoder has read stays before what it has not.
pub(crate) fn prefer_recent(passages: &mut [Passage], half_life: f64, now: SystemTime) {
    let now = now.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64() * 1000.0);
    for passage in passages.iter_mut() {
        let days = ((now - passage.dated as f64) / DAY).max(0.0);
        let kept = 1.0 - MOST_LOST + MOST_LOST * (-days / half_life.max(f64::MIN_POSITIVE)).exp2();
        passage.scores.recency = Some(kept as f32);
    }
    let weighed = |passage: &Passage| {
        let scores = &passage.scores;
        let score = scores.blended.or(scores.fused).or(scores.dense).or(scores.bm25).unwrap_or_default();
        score * scores.recency.unwrap_or(1.0)
    };
    passages.sort_by(|a, b| {
        let was_read = |passage: &Passage| passage.scores.blended.is_some();
        was_read(b).cmp(&was_read(a)).then_with(|| weighed(b).total_cmp(&weighed(a)))
    });
}

/// By what they have in all.
fn sort(passages: &mut [Passage]) {
    // Equal scores keep the order of fusion, since the sort is stable.
    passages.sort_by(|a, b| b.scores.blended.partial_cmp(&a.scores.blended).unwrap_or(std::cmp::Ordering::Equal));
}

/// Fills in the cross-encoder's scores.
fn read(reranker: &dyn Reranker, query: &str, passages: &mut [Passage]) -> Result<(), RetrieveError> {
    let texts: Vec<String> = passages.iter().map(Passage::full_text).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    for (passage, logit) in passages.iter_mut().zip(reranker.score(query, &texts)?) {
        passage.scores.rerank = Some(logit);
        let trusted = TRUST / (1.0 + (-logit / SMOOTHING).exp());
        passage.scores.blended = Some(passage.scores.fused.unwrap_or_default() + trusted);
    }
    Ok(())
}

/// Follows links out of the best of ranked passages: gives a share of their scores to what they name, and brings in what
/// was not found otherwise. Only what was read by the cross-encoder has a place among the others; the rest stays behind.
pub(crate) fn follow_links(
    reranker: &dyn Reranker,
    snapshot: &Snapshot,
    query: &str,
    passages: &mut Vec<Passage>,
) -> Result<(), RetrieveError> {
    let read_so_far = passages.iter().take_while(|passage| passage.scores.blended.is_some()).count();
    let mut rest = passages.split_off(read_so_far);
    let best: Vec<(i64, i64, f32, String)> = passages
        .iter()
        .take(LINKING)
        .map(|best| (best.chunk, best.document, best.scores.blended.unwrap_or_default(), best.text.clone()))
        .collect();
    let mut followed: Vec<i64> = Vec::new();
    for (chunk, document, score, text) in best {
        let mut links = snapshot.links(&text).map_err(store)?;
        links.retain(|link| link.document != document && !followed.contains(&link.document));
        links.truncate(LINKS);
        let mut unread: Vec<Passage> = Vec::new();
        for link in &links {
            followed.push(link.document);
            if passages.iter().any(|known| known.document == link.document) {
                continue;
            }
            match rest.iter().position(|known| known.document == link.document) {
                Some(at) => unread.push(rest.remove(at)),
                None => unread.extend(snapshot.passages(&[link.chunk]).map_err(store)?),
            }
        }
        read(reranker, query, &mut unread)?;
        passages.append(&mut unread);
        for link in links {
            let named = passages.iter_mut().filter(|known| known.document == link.document);
            let score_of = |passage: &Passage| passage.scores.blended.unwrap_or_default();
            let best = named.max_by(|a, b| score_of(a).total_cmp(&score_of(b)));
            if let Some(named) = best {
                named.scores.blended = named.scores.blended.map(|own| own + LINK_SHARE * score);
                named.scores.linked_from = Some(chunk);
            }
        }
    }
    sort(passages);
    passages.append(&mut rest);
    Ok(())
}
