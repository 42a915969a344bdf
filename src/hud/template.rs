use std::{collections::BTreeSet, fmt, sync::Arc};

use minijinja::{AutoEscape, Environment, UndefinedBehavior};

use super::{Canvas, Format, guard};
use crate::{
    Error, ErrorKind, Result,
    id::{FacetType, Role},
    json::Value,
    text::tag_name,
    veil::{Facet, TagSet},
};

/// How much work one facet's template may do; enough for any page of text, not for an endless loop.
const FUEL: u64 = 1_000_000;

/// A template for each facet type, in the language of Jinja, and another format for the rest.
///
/// A template sees the facet's wire form: `content`, `type`, `id`, `displayName`, `state`,
/// `attributes`, `tags`, … Strings are neutralised against the built-in tags, the tags of facets,
/// and the tags that stand in the templates; numbers that are no integers of 64 bits are the text of
/// their digits. Children follow, each in its own form.
///
/// ```
/// use std::sync::Arc;
/// use afterimage::hud::{TemplateFormat, XmlFormat};
///
/// let format = TemplateFormat::new("ship", Arc::new(XmlFormat))
///     .template("event", "<log who=\"{{ agentName }}\">{{ content }}</log>")?;
/// # Ok::<(), afterimage::Error>(())
/// ```
pub struct TemplateFormat {
    environment: Environment<'static>,
    tags: BTreeSet<String>,
    fallback: Arc<dyn Format>,
    name: String,
    id: String,
    digest: blake3::Hasher,
}

impl TemplateFormat {
    /// A format without templates, so that everything looks as in `fallback`. `name` becomes part
    /// of the format's id, beside a digest of the templates.
    pub fn new(name: impl Into<String>, fallback: Arc<dyn Format>) -> Self {
        let name = name.into();
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Lenient);
        environment.set_fuel(Some(FUEL));
        // By default a facet type with a file's ending, as `x.html`, would turn escaping on.
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        let (tags, digest) = Default::default();
        let id = format!("{name}/{}", fallback.id());
        Self { environment, tags, fallback, name, id, digest }
    }

    /// Sets the template for facets of type `facet_type`. O(source), which is compiled.
    ///
    /// # Errors
    /// [`ErrorKind::Template`] where the template is wrong, with the line.
    pub fn template(mut self, facet_type: impl Into<FacetType>, source: &str) -> Result<Self> {
        let facet_type = facet_type.into();
        self.environment
            .add_template_owned(facet_type.to_string(), source.to_owned())
            .map_err(template_error)?;
        self.tags.extend(tags_of(source));
        for part in [facet_type.as_str(), source] {
            self.digest.update(&(part.len() as u64).to_le_bytes());
            self.digest.update(part.as_bytes());
        }
        let digest = self.digest.finalize().to_hex();
        let short = digest.get(..12).unwrap_or_default();
        self.id = format!("{}#{short}/{}", self.name, self.fallback.id());
        Ok(self)
    }
}

impl fmt::Debug for TemplateFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let types: Vec<&str> = self.environment.templates().map(|(name, _)| name).collect();
        f.debug_struct("TemplateFormat")
            .field("id", &self.id)
            .field("templates", &types)
            .field("tags", &self.tags)
            .finish_non_exhaustive()
    }
}

impl Format for TemplateFormat {
    fn id(&self) -> &str {
        &self.id
    }

    fn facet(&self, facet: &Facet, canvas: &mut Canvas<'_>) -> Result<()> {
        let Ok(template) = self.environment.get_template(&facet.facet_type) else {
            return self.fallback.facet(facet, canvas);
        };
        let value = Facet { children: Vec::new(), ..facet.clone() }.to_json();
        let mut tags = canvas.tags().clone();
        self.tags.iter().for_each(|tag| tags.insert(tag.clone()));
        let text = template.render(neutralised(&value, &tags)).map_err(template_error)?;
        canvas.text(&text);
        canvas.children(facet, "\n", |child, canvas| self.facet(child, canvas))
    }

    fn turn(&self, role: Role) -> Option<(&str, &str)> {
        self.fallback.turn(role)
    }

    fn separator(&self, role: Role) -> &str {
        self.fallback.separator(role)
    }

    fn frame_separator(&self) -> &str {
        self.fallback.frame_separator()
    }
}

fn template_error(error: minijinja::Error) -> Error {
    let line = error.line();
    let message = format!("template: {error}");
    Error::new(ErrorKind::Template, message)
        .at(|place| place.line = line.map(|line| line as u64))
        .with_source(error)
}

/// The value as a template sees it: neither strings nor the keys of objects can forge a tag.
fn neutralised(value: &Value, tags: &TagSet) -> minijinja::Value {
    match value {
        Value::Null => ().into(),
        Value::Bool(flag) => (*flag).into(),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(value), _) => value.into(),
            (None, Some(value)) => value.into(),
            // Its digits as they stand: as a float it would be another number.
            (None, None) => number.to_string().into(),
        },
        Value::String(text) => guard::neutralised(text, tags).into_owned().into(),
        Value::Array(array) => {
            array.iter().map(|value| neutralised(value, tags)).collect::<Vec<_>>().into()
        }
        Value::Object(object) => minijinja::Value::from_pairs(
            object
                .iter()
                .map(|(key, value)| (guard::neutralised(key, tags), neutralised(value, tags))),
        ),
    }
}

/// The names of the tags that stand in a template.
fn tags_of(source: &str) -> impl Iterator<Item = String> {
    source.split('<').skip(1).filter_map(|after| {
        let name = after.trim_start_matches('/');
        let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-');
        let name = name.get(..end.unwrap_or(name.len()))?;
        (!name.is_empty()).then(|| tag_name(name).into_owned())
    })
}
