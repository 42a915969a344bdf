//! The memory: a wire and a transport of rig, for any provider that the session speaks to.

use std::{
    collections::BTreeSet,
    error::Error,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use afterimage::{
    Result, json,
    session::{Awaits, Model, Session, Tool, ToolCall},
};
use futures::StreamExt;
use rig_agent::{
    Agent,
    run::{AgentRun, ModelTurn},
};
use rig_core::{
    completion::{
        AssistantContent, AssistantMessage, CompletionRequest, Message, ToolDefinition, Usage,
    },
    driver::{Exchange, Opening, Transport},
    error::{EncodeError, ProviderError},
    message::{ToolName, ToolResultContent, UserContent},
    operation::Completion,
    wire::{Body, Descriptor, Encoded, Mode, Wire, WireFrame},
};

/// A wire that hands the transport what a request was made of, beside the request.
#[derive(Clone)]
pub struct Told<W>(W);

impl<W: Wire<Op = Completion, Payload = Encoded, Frame = WireFrame>> Wire for Told<W> {
    type Op = Completion;
    type Payload = (CompletionRequest, Encoded);
    type Frame = WireFrame;
    type Decoder<'id> = W::Decoder<'id>;
    type Reassembler = W::Reassembler;

    fn describe(&self) -> Descriptor<'_> {
        self.0.describe()
    }

    fn encode(&self, said: CompletionRequest, mode: Mode) -> Result<Self::Payload, EncodeError> {
        self.0.encode(said.clone(), mode).map(|request| (said, request))
    }

    fn decoder<'id>(&self) -> Self::Decoder<'id> {
        self.0.decoder()
    }
}

/// A transport that sends the requests of a session in the place of rig's, and gives it the answers.
#[derive(Clone)]
pub struct Remembering<T> {
    session: Arc<Mutex<Session>>,
    model: Model,
    transport: T,
}

/// A model of rig's that remembers.
pub type Remembered<W, T> = rig_core::Model<Told<W>, Remembering<T>>;

/// The same model of rig's, with a session between it and its transport.
pub fn remember<W, T>(
    rig: rig_core::Model<W, T>,
    session: Session,
    model: Model,
) -> Remembered<W, T> {
    let session = Arc::new(Mutex::new(session));
    let transport = Remembering { session, model, transport: rig.transport };
    rig_core::Model { wire: Told(rig.wire), transport }
}

impl<W, T> Transport<Told<W>> for Remembering<T>
where
    W: Wire<Op = Completion, Payload = Encoded, Frame = WireFrame>,
    T: Transport<W>,
{
    #[expect(clippy::result_large_err, reason = "it is rig's error")]
    fn send(
        &self,
        payload: (CompletionRequest, Encoded),
        exchange: Exchange,
    ) -> Opening<WireFrame> {
        let (memory, (said, mut request)) = (self.clone(), payload);
        Opening::new(async move {
            // What rig wrote stays rig's but for its body: the address, the key, the headers.
            let body = memory.request(&said).map_err(ProviderError::request)?;
            *request.request.body_mut() = Body::Bytes(body.into_bytes());
            let opened = memory.transport.send(request, exchange).await?;
            // One frame is the whole answer: `prompt` does not stream.
            Ok(opened.map_frames(move |frames| {
                frames.map(move |frame| {
                    let frame = frame?;
                    let answer = memory.session().answer(frame.as_str().as_bytes());
                    answer.map_err(ProviderError::request)?;
                    Ok(frame)
                })
            }))
        })
    }
}

impl<T> Remembering<T> {
    pub fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says to the session what is new in a request of rig's, and gives the body that is sent.
    fn request(&self, said: &CompletionRequest) -> Result<String> {
        let mut session = self.session();
        if let Some(system) = said.system_instructions() {
            session.system(system)?;
        }
        let tool = |tool: &ToolDefinition| {
            let schema = json::to_value(&tool.parameters)?;
            Ok(Tool::new(tool.name.as_ref(), &tool.description, schema))
        };
        session.tools(said.tools.iter().map(tool).collect::<Result<Vec<_>>>()?)?;
        // What comes behind the last answer is new, unless the session was told before a crash.
        let awaits = session.awaits();
        let is_answer = |message: &Message| matches!(message, Message::Assistant(_));
        let new = said.chat_history.rsplit(is_answer).next().unwrap_or_default();
        for message in new {
            let Message::User { content } = message else { continue };
            for part in content {
                match (part, &awaits) {
                    (UserContent::Text(text), Awaits::User) => session.user(text.text())?,
                    (UserContent::ToolResult(result), Awaits::Results(_)) => {
                        let text: String = result.content.iter().map(written).collect();
                        match result.is_error {
                            false => session.tool_result(&result.call.wire(), text)?,
                            true => session.tool_error(&result.call.wire(), text)?,
                        }
                    }
                    _ => {}
                }
            }
        }
        let request = session.request(&self.model)?;
        let receipt = request.receipt;
        let (turn, total, blocks) = (receipt.turn, receipt.total, receipt.blocks);
        println!("request {turn}: {total} tokens, {blocks} summaries, {}", &receipt.hash[..8]);
        Ok(request.body)
    }
}

/// A part of a result as text, which is what a session keeps.
fn written(content: &ToolResultContent) -> String {
    match content {
        ToolResultContent::Text(text) => text.text().to_owned(),
        ToolResultContent::Json { value } => value.to_string(),
        ToolResultContent::Image(_) => "[an image]".to_owned(),
    }
}

/// A run of rig's that stands where the session stands: at calls that wait for their results.
pub async fn run_at(calls: &[ToolCall], agent: &Agent) -> Result<AgentRun, Box<dyn Error>> {
    let mut run = AgentRun::new("(known to the session)").max_turns(4);
    run.next_step()?;
    run.advertise_tools(1, agent.tool_definitions(None).await?);
    let mut content = Vec::new();
    for call in calls {
        let arguments = serde_json::to_value(&call.arguments)?;
        content.push(AssistantContent::tool_call(&call.id, ToolName::new(&call.name)?, arguments));
    }
    let names: BTreeSet<_> = calls.iter().map(|call| call.name.clone()).collect();
    let (head, raw) = (AssistantMessage::default(), serde_json::Value::Null);
    let turn = ModelTurn::new(head, content, Usage::default(), names.clone(), names, raw);
    run.model_response(turn)?;
    Ok(run)
}
