//! `anchorite kb`

pub(crate) mod arguments;
mod changing;
mod history;
mod looking;

use anchorite::Engine;
use anchorite::store::KnowledgeBase;
use anyhow::Result;

use self::arguments::KbAction;
use crate::Found;
use crate::output::Output;

pub(crate) fn run(engine: &Engine, action: &KbAction, output: &Output) -> Result<Found> {
    match action {
        KbAction::Stats { place, view } => looking::stats(&view.options(None)?.snapshot(&place.kb)?, output),
        KbAction::List { place, view, page } => looking::list(&view.options(None)?.snapshot(&place.kb)?, page, output),
        KbAction::Sources { place, view, page } => {
            looking::sources(&view.options(None)?.snapshot(&place.kb)?, page, output)
        }
        KbAction::Show { document, place, view } => {
            looking::show(&view.options(None)?.snapshot(&place.kb)?, document, output)
        }
        KbAction::Delete { documents, place, restorable, actor } => {
            changing::delete(&place.kb, documents, *restorable, &actor.name(), output)
        }
        KbAction::Correct { source, text, place, actor } => {
            changing::correct(engine, &place.kb, source, text, actor.name(), output)
        }
        KbAction::Set { sources, place, custody, metadata, actor } => {
            changing::set(&place.kb, sources, &custody.resolve()?, metadata, &actor.name(), output)
        }
        KbAction::Expire { place, actor } => changing::expire(&place.kb, &actor.name(), output),
        KbAction::Thread { thread, place } => looking::thread(engine, thread, &place.kb, output),
        KbAction::Verify { place, repair } => looking::verify(&KnowledgeBase::at(&place.kb), *repair, output),
        KbAction::History { place, limit } => {
            history::list(&KnowledgeBase::at(&place.kb).snapshot()?, *limit as usize, output)
        }
        KbAction::Diff { from, to, place, view } => {
            history::diff(&view.options(None)?.snapshot(&place.kb)?, *from, *to, output)
        }
        KbAction::Rollback { generation, place, without_erased, actor } => {
            history::roll_back(&place.kb, *generation, *without_erased, &actor.name(), output)
        }
        KbAction::Compact { place, keep_from, actor } => history::compact(&place.kb, *keep_from, &actor.name(), output),
        KbAction::Audit { source, place, view, limit } => {
            history::audit(&view.options(None)?.snapshot(&place.kb)?, source.as_deref(), *limit as usize, output)
        }
        KbAction::Export { folder, place, view } => {
            looking::export(&view.options(None)?.snapshot(&place.kb)?, folder, output)
        }
        KbAction::WhyNot { document, query, place, view, k } => {
            looking::why_not(engine, &place.kb, document, query, view.options(None)?, *k, output)
        }
    }
}
