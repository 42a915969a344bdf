use std::{fmt, sync::Arc};

use super::{CapturePolicy, Format, XmlFormat, canvas::Page};
use crate::{
    Result,
    id::{FacetType, Millis, Role},
    json::{Object, Value},
    snapshot::{FrameSnapshot, Rendering, SnapshotIdentity, SnapshotOptions, Tiling},
    tokens::TokenCounter,
    veil::{Facet, Frame, Source, TagSet, VisibleFacets},
};

/// The version of the renderer and of the built-in formats. It rises when the same facets would
/// give other bytes.
pub const RENDERER_VERSION: u32 = 1;

/// The table from a frame's source to the role in which it is spoken.
type Roles = Arc<dyn Fn(&Source) -> Role + Send + Sync>;

/// Renders frames and contexts. Cheap to clone.
#[derive(Clone)]
pub struct Hud {
    format: Arc<dyn Format>,
    counter: Arc<dyn TokenCounter>,
    roles: Roles,
    options: SnapshotOptions,
    policy: CapturePolicy,
    identity: Arc<SnapshotIdentity>,
    /// The format's, shared by the messages that hold it.
    frame_separator: Arc<str>,
}

/// Configures a [`Hud`]; nothing can be changed once it is built.
#[must_use]
pub struct HudBuilder {
    format: Arc<dyn Format>,
    counter: Arc<dyn TokenCounter>,
    roles: Roles,
    options: SnapshotOptions,
    policy: CapturePolicy,
    viewer: String,
}

/// The roles of the built-in sources: the user and the environment speak as user, the agent as
/// assistant, the operator as system; any other source speaks as user.
pub fn default_roles(source: &Source) -> Role {
    match source {
        Source::Agent => Role::Assistant,
        Source::System => Role::System,
        Source::User | Source::Environment | Source::Other(_) => Role::User,
    }
}

impl fmt::Debug for Hud {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hud")
            .field("identity", &self.identity)
            .field("options", &self.options)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for HudBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HudBuilder")
            .field("format", &self.format.id())
            .field("counter", &self.counter.id())
            .field("viewer", &self.viewer)
            .field("options", &self.options)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

impl HudBuilder {
    /// How facets look. [`XmlFormat`] by default.
    pub fn format(mut self, format: Arc<dyn Format>) -> Self {
        self.format = format;
        self
    }

    /// Who speaks frames of a source. [`default_roles`] by default.
    pub fn roles(mut self, roles: impl Fn(&Source) -> Role + Send + Sync + 'static) -> Self {
        self.roles = Arc::new(roles);
        self
    }

    /// Limits of the snapshots.
    pub fn snapshot_options(mut self, options: SnapshotOptions) -> Self {
        self.options = options;
        self
    }

    /// When frames are sealed. [`CapturePolicy::OnPush`] by default.
    pub fn capture_policy(mut self, policy: CapturePolicy) -> Self {
        self.policy = policy;
        self
    }

    /// For whom is rendered; part of what identifies a snapshot. `agent` by default.
    pub fn viewer(mut self, viewer: impl Into<String>) -> Self {
        self.viewer = viewer.into();
        self
    }

    /// The finished HUD.
    pub fn build(self) -> Hud {
        let Self { format, counter, roles, options, policy, viewer } = self;
        let identity = Arc::new(SnapshotIdentity {
            rendering: Some(Rendering {
                viewer,
                format: format.id().to_owned(),
                renderer: RENDERER_VERSION,
            }),
            tokenizer: counter.id().to_owned(),
            max_chunk_bytes: options.max_chunk_bytes,
            extra: Object::new(),
        });
        let frame_separator = format.frame_separator().into();
        Hud { format, counter, roles, options, policy, identity, frame_separator }
    }
}

impl Hud {
    /// Configures a HUD that counts with `counter`.
    pub fn builder(counter: Arc<dyn TokenCounter>) -> HudBuilder {
        HudBuilder {
            format: Arc::new(XmlFormat),
            counter,
            roles: Arc::new(default_roles),
            options: SnapshotOptions::default(),
            policy: CapturePolicy::default(),
            viewer: "agent".to_owned(),
        }
    }

    /// A HUD with the defaults that counts with `counter`.
    pub fn new(counter: Arc<dyn TokenCounter>) -> Self {
        Self::builder(counter).build()
    }

    /// What makes the snapshots of this HUD.
    pub fn identity(&self) -> &Arc<SnapshotIdentity> {
        &self.identity
    }

    /// The token counter.
    pub fn counter(&self) -> &Arc<dyn TokenCounter> {
        &self.counter
    }

    /// When frames are sealed.
    pub fn capture_policy(&self) -> CapturePolicy {
        self.policy
    }

    pub(super) fn frame_separator(&self) -> &Arc<str> {
        &self.frame_separator
    }

    /// The role in which a frame of `source` is spoken.
    pub fn role_of(&self, source: &Source) -> Role {
        (self.roles)(source)
    }

    /// Renders what a frame shows. The one path from facets to text: capture, re-rendering and
    /// the tail of a context all come through here. O(text), and the time to count it.
    ///
    /// # Errors
    /// Those of the format, with frame and facet.
    pub fn render_frame(
        &self,
        frame: &Frame,
        shown: &VisibleFacets,
        now: Millis,
    ) -> Result<FrameSnapshot> {
        let role = self.role_of(&frame.source);
        let facets = shown.facets.iter().map(AsRef::as_ref);
        let tiling = self
            .draw(facets, role, &shown.tags, self.format.turn(role), None)
            .map_err(|error| error.at_frame(frame.sequence.get()))?;
        Ok(self.sealed(tiling, now))
    }

    /// Renders one facet that is in no frame, spoken by `role`: the summary of a block. `tags` are
    /// those that its content must not forge: see [`Veil::tags`](crate::veil::Veil::tags). O(text).
    ///
    /// # Errors
    /// Those of the format, with the facet.
    pub fn render_facet(
        &self,
        facet: &Facet,
        role: Role,
        tags: &TagSet,
        now: Millis,
    ) -> Result<FrameSnapshot> {
        let tiling = self.draw(std::iter::once(facet), role, tags, None, None)?;
        Ok(self.sealed(tiling, now))
    }

    /// The snapshot of what was written, taken at `now`.
    pub(super) fn sealed(&self, tiling: Tiling, now: Millis) -> FrameSnapshot {
        tiling.seal(&*self.counter, now, &self.identity)
    }

    /// Writes facets one after the other, `turn` around them where they show anything. `own` is that
    /// of them which the HUD itself made.
    pub(super) fn draw<'f>(
        &self,
        facets: impl Iterator<Item = &'f Facet> + Clone,
        role: Role,
        tags: &TagSet,
        turn: Option<(&str, &str)>,
        own: Option<&Facet>,
    ) -> Result<Tiling> {
        let separator = self.format.separator(role);
        let marks = !separator.is_empty();
        let mut likely = turn.map_or_else(SizeEstimate::default, |(open, close)| SizeEstimate {
            chunks: 2,
            bytes: open.len() + close.len(),
        });
        facets.clone().for_each(|facet| likely.add(facet, marks));
        // No separator stands before the first: what is reserved in vain is given back at once.
        likely.chunks = likely.chunks.saturating_sub(usize::from(marks));
        let mut tiling = Tiling::with_capacity(self.options.clone(), likely.chunks, likely.bytes);
        let mut page = Page { tiling: &mut tiling, counter: &*self.counter, role, tags, own };
        let mut before_next = turn.map_or("", |(open, _)| open);
        for facet in facets {
            let before = page.tiling.len();
            self.format
                .facet(facet, &mut page.canvas(facet, before_next))
                .map_err(|error| error.at(|place| place.facet = Some(facet.id.to_string())))?;
            if page.tiling.len() > before {
                before_next = separator;
            }
        }
        if let Some((_, close)) = turn
            && page.tiling.len() > 0
            && !close.is_empty()
        {
            page.formatting(close);
        }
        Ok(tiling)
    }
}

/// About what facets render to. A guess that is off costs an allocation.
#[derive(Clone, Copy, Default)]
struct SizeEstimate {
    chunks: usize,
    bytes: usize,
}

impl SizeEstimate {
    /// Adds what a facet renders to: what it says, its parameters, and, in a format that `marks`
    /// facets, its tags and the separator before it.
    fn add(&mut self, facet: &Facet, marks: bool) {
        let is_tagged = facet.state.is_some()
            || facet.tool_name().is_some()
            || facet.display_name.is_some()
            || facet.facet_type == FacetType::THOUGHT;
        let (chunks, bytes) = match (marks, is_tagged) {
            (false, _) => (1, 0),
            (true, false) => (2, 2),
            (true, true) => (4, 64),
        };
        self.chunks += chunks;
        self.bytes += bytes + facet.content.len();
        if let Some(parameters) = facet.call().and_then(|call| call.parameters) {
            self.bytes += likely_len(parameters, if marks { 32 } else { 4 });
        }
        facet.children.iter().for_each(|child| self.add(child, marks));
    }
}

/// About how many bytes a value renders to, with so many around each member.
fn likely_len(value: &Value, around: usize) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(array) => array.iter().map(|value| likely_len(value, around)).sum(),
        Value::Object(object) => {
            object.iter().map(|(key, value)| key.len() + around + likely_len(value, around)).sum()
        }
        _ => 8,
    }
}
