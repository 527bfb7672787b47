//! Polls extractors in memory.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{Driver, Failed, Stage, Topics, block_on};
use crate::glue::{Broken, Config, ConfigChange, Env, Page, RawRecord, StateChange, Written};
use crate::next::Next;
use crate::partitioner::partition_of;

/// Pages after which the driver believes that a source has no end.
const TOO_MANY_PAGES: usize = 100_000;

impl Driver {
    /// Polls every config of an extractor, in the order of their keys, each until it answers something else than
    /// [`Next::Again`], and says how many calls that were. Configs are the records of its config topics; those that are
    /// tombstoned or suspended are left out. Transformers do not run meanwhile; [`run`](Driver::run) runs them.
    ///
    /// After a failure nothing of the failed page counts, while earlier pages do.
    ///
    /// # Panics
    ///
    /// If there is no such stage, or it is a transformer.
    pub async fn poll(&mut self, stage: &str) -> Result<usize, Failed> {
        let index = self.stages.iter().position(|one| one.stage.info().name == stage);
        let Some(index) = index else { panic!("the pipeline has no stage `{stage}`") };
        self.has_resources(&self.stages[index])?;
        let stage = &mut self.stages[index];
        assert!(
            stage.stage.info().extractor.is_some(),
            "stage `{}` is a transformer, which `run` runs",
            stage.stage.info().name
        );
        self.tables.read(&self.topics, &mut self.env)?;
        stage.poll(&mut self.topics, &self.env).await
    }

    /// [`poll`](Driver::poll), for tests that are not async.
    pub fn poll_blocking(&mut self, stage: &str) -> Result<usize, Failed> {
        block_on(self.poll(stage))
    }
}

impl Stage {
    async fn poll(&mut self, topics: &mut Topics, env: &Env) -> Result<usize, Failed> {
        let info = self.stage.info();
        let tokens = if info.inputs.is_empty() { 1 } else { topics.partitions() };
        let mut calls = 0;
        for Config { record: config, key, suspended } in self.configs(topics)? {
            if suspended {
                continue;
            }
            let token = partition_of(&key, tokens) as usize;
            let mut next = Next::Again;
            while next == Next::Again {
                if calls == TOO_MANY_PAGES {
                    return Err(Failed::endless_pages(info, &config, calls));
                }
                next = self.page(&config, &key, token, topics, env).await?;
                calls += 1;
            }
        }
        Ok(calls)
    }

    /// One page, committed.
    async fn page(
        &mut self,
        config: &RawRecord,
        key: &Bytes,
        token: usize,
        topics: &mut Topics,
        env: &Env,
    ) -> Result<Next, Failed> {
        let info = self.stage.info();
        let mut page = Page::new(config.clone(), self.states[token].get(key).cloned());
        let next =
            self.stage.page(&mut page, env).await.map_err(|trouble| Failed::at(info, config, trouble))?;
        page.stamp(topics.tick());
        let names: Vec<_> = info.outputs().map(|topic| topic.name).collect();
        topics.append(&page.outputs, &names).map_err(|fault| Failed::output(info, fault))?;
        match page.change {
            StateChange::Unchanged => {}
            StateChange::Set(state) => drop(self.states[token].insert(key.clone(), state)),
            StateChange::Deleted => drop(self.states[token].remove(key)),
        }
        Ok(next)
    }

    /// The configs as they are now, as the runtime has them.
    fn configs(&self, topics: &Topics) -> Result<Vec<Config>, Failed> {
        let info = self.stage.info();
        let implicit = info.inputs.is_empty().then(Page::implicit);
        let inputs = (0..).zip(info.inputs);
        let written = inputs.flat_map(|(input, topic)| {
            topics.all(topic.name).map(move |record| RawRecord { input, ..record.clone() })
        });
        let (mut configs, mut broken, mut stands) = (BTreeMap::new(), Broken::default(), BTreeMap::new());
        for record in implicit.into_iter().chain(written) {
            let id = (record.input, record.key.clone());
            let Some(written) = Written::of(&record).behind(stands.get(&id).copied()) else { continue };
            let taken = self.stage.config(&record).map(|(change, _)| change);
            if !matches!(taken, Ok(ConfigChange::Stays)) {
                stands.insert(id.clone(), written);
            }
            let taken = taken.map(|change| match change {
                ConfigChange::Set(config) => drop(configs.insert(id.clone(), config)),
                ConfigChange::Gone => drop(configs.remove(&id)),
                ConfigChange::Stays => {}
            });
            broken.note(id, &record, written, taken);
        }
        broken.first().map_err(|refused| Failed::config(info, refused))?;
        Ok(configs.into_values().collect())
    }
}
