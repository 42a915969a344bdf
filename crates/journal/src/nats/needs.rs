//! The subjects that each kind of work needs; `docs/journal.md` lists them for those who grant them.

use super::{NatsJournal, denials::Needs};
use crate::{Result, SessionName};

impl NatsJournal {
    /// Does some work, unless the server says that this user may not do what it needs.
    pub(super) async fn allowed<T>(
        &self,
        needs: &Needs,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        self.connection.denials.allowing(needs, work).await
    }

    fn of_events(&self, verb: &str) -> String {
        format!("$JS.API.{verb}.{}", self.options.stream)
    }

    fn of_bucket(&self, verb: &str) -> String {
        format!("$JS.API.{verb}.KV_{}", self.options.bucket)
    }

    fn of_objects(&self, verb: &str) -> String {
        format!("$JS.API.{verb}.OBJ_{}", self.options.bucket)
    }

    fn values(&self) -> String {
        format!("$KV.{}.", self.options.bucket)
    }

    fn objects(&self) -> String {
        format!("$O.{}.", self.options.bucket)
    }

    pub(super) fn needs_of_head(&self) -> Needs {
        Needs::of([
            self.of_events("STREAM.INFO"),
            self.of_events("STREAM.MSG.GET"),
            self.of_bucket("DIRECT.GET"),
            self.of_bucket("STREAM.MSG.GET"),
        ])
    }

    pub(super) fn needs_of_page(&self) -> Needs {
        Needs::of([self.of_events("DIRECT.GET")])
    }

    pub(super) fn needs_of_list(&self) -> Needs {
        Needs::of([self.of_events("STREAM.INFO"), self.of_events("STREAM.MSG.GET")])
    }

    fn reading_snapshots(&self) -> Vec<String> {
        let verbs = ["STREAM.INFO", "STREAM.MSG.GET", "DIRECT.GET", "CONSUMER.CREATE"];
        verbs.iter().flat_map(|verb| [self.of_bucket(verb), self.of_objects(verb)]).collect()
    }

    pub(super) fn needs_of_snapshot(&self) -> Needs {
        Needs::of(self.reading_snapshots())
    }

    pub(super) fn needs_of_put(&self) -> Needs {
        let written = [self.values(), self.objects(), self.of_events("STREAM.MSG.GET")];
        Needs::of(self.reading_snapshots().into_iter().chain(written))
    }

    pub(super) fn needs_of_ids(&self, session: &SessionName) -> Needs {
        let written = format!("{}{}.ids.", self.values(), session.token());
        Needs::of([self.of_bucket("DIRECT.GET"), self.of_bucket("STREAM.MSG.GET"), written])
    }

    pub(super) fn needs_of_end(&self, session: &SessionName) -> Needs {
        let written = format!("{}{}.end", self.values(), session.token());
        Needs::of([self.of_bucket("DIRECT.GET"), self.of_bucket("STREAM.MSG.GET"), written])
    }

    pub(super) fn needs_of_cleaning(&self) -> Needs {
        Needs::of([self.of_objects("STREAM.PURGE"), self.objects()])
    }

    pub(super) fn needs_of_removal(&self) -> Needs {
        let purges = [
            self.of_events("STREAM.PURGE"),
            self.of_bucket("STREAM.PURGE"),
            self.of_objects("STREAM.PURGE"),
        ];
        let written = [self.values(), self.objects()];
        Needs::of(self.reading_snapshots().into_iter().chain(purges).chain(written))
    }
}
