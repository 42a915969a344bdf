use std::path::{Path, PathBuf};

use super::{layout::META, sealed};
use crate::{
    Error, ErrorKind, Result, Targets, TimelineConfig,
    json::{Fields, Object, ObjectExt, Value, from_value, to_value},
    log::Files,
};

const FORMAT: &str = "afterimage session";
const VERSION: u64 = 1;

/// What `session.meta.json` says of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionMeta {
    /// The id of the session.
    pub session_id: String,
    /// When it began: ISO 8601.
    pub created_at: String,
    /// The configuration.
    pub config: TimelineConfig,
    /// The table of targets.
    pub targets: Targets,
    /// Whose past it shares, if it is a branch.
    pub parent: Option<Parent>,
    /// Members that are not known here.
    pub extra: Object,
    /// Members of the configuration that are not known here.
    pub(super) config_extra: Object,
}

/// The session whose first turns are a branch's, too.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Parent {
    /// Its directory, as seen from that of the branch. A path that is not UTF-8 is written as it is
    /// shown.
    #[serde(serialize_with = "shown")]
    pub directory: PathBuf,
    /// Its id.
    #[serde(default)]
    pub session_id: String,
    /// The last turn that both have.
    pub turn: u64,
}

fn shown<S: serde::Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

impl SessionMeta {
    pub(super) fn to_json(&self) -> Result<Value> {
        let mut object = Object::new();
        object.put("format", FORMAT);
        object.put("formatVersion", VERSION);
        object.put("sessionId", self.session_id.as_str());
        object.put("createdAt", self.created_at.as_str());
        let mut config = to_value(&self.config)?;
        if let Value::Object(config) = &mut config {
            config.put_unknown(&self.config_extra);
        }
        object.put("config", config);
        object.put("targets", self.targets.to_json());
        object.put_some("parent", self.parent.as_ref().map(to_value).transpose()?);
        object.put_unknown(&self.extra);
        Ok(Value::Object(object))
    }

    /// Reads a session's own description; `None` where the file is of another program, or not there.
    pub(super) fn read(files: &dyn Files, directory: &Path) -> Result<Option<Self>> {
        let path = directory.join(META);
        let Some(bytes) = sealed::read_if_there(files, &path)? else { return Ok(None) };
        let is_ours = |value: &Value| value.str_at("format") == Some(FORMAT);
        match sealed::open(&bytes) {
            Ok(value) if is_ours(&value) => {
                Self::from_json(value).map(Some).map_err(|error| error.in_file(&path))
            }
            Ok(_) => Ok(None),
            // Without a seal it may be what another program wrote.
            Err(error) => match crate::json::read(&bytes) {
                Ok(value) if !is_ours(&value) && value.get("crc").is_none() => Ok(None),
                _ => Err(error.in_file(&path)),
            },
        }
    }

    fn from_json(value: Value) -> Result<Self> {
        let mut fields = Fields::of(value, "a session")?;
        drop(fields.take("format"));
        let version = fields.u64("formatVersion")?.unwrap_or_default();
        if version != VERSION {
            let message = format!("expected a session of version {VERSION}, found {version}");
            return Err(Error::new(ErrorKind::Version, message).under("formatVersion"));
        }
        let config = |value| {
            let mut fields = Fields::of(value, "a configuration")?;
            Ok::<_, Error>((TimelineConfig::take(&mut fields)?, fields.rest()))
        };
        let (config, config_extra) = fields.nested("config", config)?.unwrap_or_default();
        Ok(Self {
            session_id: Fields::required(fields.string("sessionId")?, "sessionId", "an id")?,
            created_at: fields.string("createdAt")?.unwrap_or_default(),
            config,
            targets: fields.nested("targets", Targets::from_json)?.unwrap_or_default(),
            parent: fields.nested("parent", from_value)?,
            extra: fields.rest(),
            config_extra,
        })
    }
}
