//! Asking: a graph over the retriever and the models, run within a budget.

use std::path::Path;
use std::sync::Arc;

use anchorite_core::{
    Answer, Budget, BudgetLimits, ConflictRule, Embedder, Generator, Passage, Reranker, RetrieveError, Retriever,
};
use anchorite_graph::{Checkpoint, Checkpointer, Event, FolderCheckpointer, RunOptions, ThreadId};
use anchorite_rag::{INSTRUCTIONS, Parts, Piece, RagState, Settings, Strategy, build, conclude};

use crate::models::{probe_of, with_known};
use crate::{Engine, Error, SearchOptions, ViewOptions};

/// Passages that the cross-encoder reads for each query of the loop: few are kept, and there are several queries.
pub(crate) const RERANKED: usize = 20;

/// Folder of a knowledge base that keeps the checkpoints of its threads.
pub(crate) const THREADS: &str = "threads";

/// How to ask.
#[derive(Clone, Debug, Default)]
pub struct AskOptions {
    /// Which graph answers.
    pub strategy: Strategy,
    /// What may be spent.
    pub budget: BudgetLimits,
    /// Keeps checkpoints under this name inside the knowledge base.
    pub thread: Option<String>,
    /// Goes on with the unfinished run of `thread`, whose question it was, instead of beginning anew.
    pub resume: bool,
    /// Answers in sentences of the documents even where a generator is there.
    pub no_generator: bool,
    /// What is left out, beside what the settings leave out.
    pub without: Vec<Piece>,
    /// Which of two documents that contradict each other is followed; `None` leaves it to the settings.
    pub conflicts: Option<ConflictRule>,
    /// Who asks, and of which documents.
    pub view: ViewOptions,
}

/// What is told while a question is answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// A node begins.
    Started {
        /// The node.
        node: String,
    },
    /// A piece of what a node writes.
    Text {
        /// The node.
        node: String,
        /// The piece.
        text: String,
    },
    /// A node has finished.
    Finished {
        /// The node.
        node: String,
        /// The decision taken after it, if there was one to take.
        decision: Option<String>,
        /// What it did, in a line.
        note: String,
        /// Seconds it took.
        seconds: f64,
    },
}

impl Engine {
    /// The states of a thread, oldest first: what was known after each node of each question asked in it.
    ///
    /// # Errors
    /// If the name can't be used or a checkpoint can't be read.
    pub fn thread(&self, kb: &Path, thread: &str) -> Result<Vec<Checkpoint>, Error> {
        Ok(FolderCheckpointer::new(kb.join(THREADS)).history(&ThreadId::new(thread)?)?)
    }

    /// Answers `question` from the knowledge base `kb`. Finding no answer is an answer: see [`Answer::status`].
    ///
    /// # Errors
    /// If the question is empty or too long, the knowledge base can't be opened, or a model fails.
    pub fn ask(
        &self,
        kb: &Path,
        question: &str,
        options: &AskOptions,
        on_progress: &mut dyn FnMut(&Progress),
    ) -> Result<Answer, Error> {
        if !options.resume {
            self.check_question("question", question)?;
        }
        let thread = options.thread.as_deref().map(ThreadId::new).transpose()?;
        let has = |piece| self.settings.has(piece) && !options.without.contains(&piece);
        let search = SearchOptions {
            rerank: has(Piece::Rerank),
            links: has(Piece::Links),
            view: options.view.clone(),
            ..SearchOptions::default()
        };
        let retriever = self.retriever(kb, &search, RERANKED)?;
        let embedder = Some(self.models.embedder()?);
        let reranker = self.models.reranker()?;
        let generator = if options.no_generator { None } else { self.models.generator()? };
        if let (Some(generator), Some(cache)) = (&generator, anchorite_models::cache_folder()) {
            let file = cache.join("instructions").join(format!("{}.bin", generator.fingerprint().sha256));
            generator.remember_instructions(&file, INSTRUCTIONS, &Budget::unlimited())?;
        }
        let mut settings = with_known(&self.settings, reranker.as_deref(), generator.as_deref());
        settings.without.extend(&options.without);
        settings.conflicts = options.conflicts.unwrap_or(settings.conflicts);
        let probe = match generator.as_deref() {
            Some(generator) => probe_of(generator, settings.probe.as_deref())?,
            None => None,
        };
        // The clock starts once the models are there: opening them is not part of thinking.
        let budget = Budget::new(options.budget.clone());
        let parts = Parts {
            retriever: &retriever,
            embedder: embedder.as_deref().map(|model| model as &dyn Embedder),
            reranker: reranker.as_ref().map(Arc::as_ref).map(|model| model as &dyn Reranker),
            generator: generator.as_ref().map(Arc::as_ref).map(|model| model as &dyn Generator),
            probe: probe.as_ref(),
            asker: options.view.viewer.name(),
            settings: &settings,
        };
        let graph = build(options.strategy, &parts)?;
        let checkpointer = thread.as_ref().map(|_| FolderCheckpointer::new(kb.join(THREADS)));
        let mut tell = |event: &Event<'_, RagState>| {
            if let Some(progress) = progress(event) {
                on_progress(&progress);
            }
        };
        let mut run_options = RunOptions::new(&budget).on_event(&mut tell);
        if let (Some(checkpointer), Some(thread)) = (&checkpointer, &thread) {
            run_options = run_options.checkpoints(checkpointer, thread);
        }
        let run = if options.resume {
            graph.resume(run_options)?
        } else {
            graph.run(RagState::new(question), run_options)?
        };
        Ok(conclude(&parts, &run, &budget)?.took(budget.elapsed()))
    }
}

fn progress(event: &Event<'_, RagState>) -> Option<Progress> {
    match event {
        Event::NodeStarted { node, .. } => Some(Progress::Started { node: (*node).to_owned() }),
        Event::Progress { node, text, .. } => {
            Some(Progress::Text { node: (*node).to_owned(), text: (*text).to_owned() })
        }
        Event::NodeFinished { node, decision, note, elapsed, .. } => Some(Progress::Finished {
            node: (*node).to_owned(),
            decision: decision.map(str::to_owned),
            note: (*note).to_owned(),
            seconds: elapsed.as_secs_f64(),
        }),
        _ => None,
    }
}

/// A retriever where nothing is searched.
pub(crate) struct Nothing;

impl Retriever for Nothing {
    fn retrieve(&self, _: &str, _: usize) -> Result<Vec<Passage>, RetrieveError> {
        Ok(Vec::new())
    }
}

/// The graph of a strategy as Mermaid and as DOT.
///
/// # Errors
/// Never for the graphs that ship.
pub fn strategy_graph(strategy: Strategy) -> Result<(String, String), Error> {
    let settings = Settings::default();
    let parts = Parts {
        retriever: &Nothing,
        embedder: None,
        reranker: None,
        generator: None,
        probe: None,
        asker: None,
        settings: &settings,
    };
    let graph = build(strategy, &parts)?;
    Ok((graph.mermaid(), graph.dot()))
}
