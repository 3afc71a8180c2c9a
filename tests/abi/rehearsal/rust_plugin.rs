// A plugin in Rust, without crates: the boundary written down once more as repr(C) structs. Its
// sandbox knows one command, echo. Everything happens on the lane; what may come from any thread is
// posted there.
#![allow(non_camel_case_types)]

use std::collections::VecDeque;
use std::ffi::c_void;
use std::mem::size_of;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

type Status = i32;
const OK: Status = 0;
const CONFLICT: Status = 5;
const UNSUPPORTED: Status = 12;
const CANCELLED: Status = 13;
const NONE: u64 = u64::MAX;

#[repr(C)]
#[derive(Clone, Copy)]
struct Text {
    ptr: *const u8,
    len: usize,
}
impl Text {
    fn of(s: &str) -> Text {
        Text { ptr: s.as_ptr(), len: s.len() }
    }
    unsafe fn bytes(&self) -> &[u8] {
        if self.ptr.is_null() { &[] } else { std::slice::from_raw_parts(self.ptr, self.len) }
    }
}

#[repr(C)]
struct Error {
    struct_size: usize,
    code: Status,
    flags: u32,
    message: Text,
    details: Text,
    retry_after_ms: u64,
}
impl Error {
    fn new(code: Status, message: &str) -> Error {
        let details = Text { ptr: null(), len: 0 };
        Error { struct_size: size_of::<Error>(), code, flags: 0, message: Text::of(message), details, retry_after_ms: NONE }
    }
}

#[repr(C)]
struct ErrorSink {
    ctx: *mut c_void,
    report: unsafe extern "C" fn(*mut c_void, *const Error),
}
unsafe fn refuse(err: *const ErrorSink, code: Status, message: &str) -> Status {
    if !err.is_null() {
        ((*err).report)((*err).ctx, &Error::new(code, message));
    }
    code
}

#[repr(C)]
struct Object<V: 'static> {
    vtbl: *const V,
}

#[repr(C)]
struct LaneVtbl {
    struct_size: usize,
    retain: unsafe extern "C" fn(*mut Lane),
    release: unsafe extern "C" fn(*mut Lane),
    post: unsafe extern "C" fn(*mut Lane, unsafe extern "C" fn(*mut c_void), *mut c_void),
    is_current: unsafe extern "C" fn(*mut Lane) -> u32,
}
type Lane = Object<LaneVtbl>;

unsafe extern "C" fn run(task: *mut c_void) {
    Box::from_raw(task as *mut Box<dyn FnOnce()>)();
}
unsafe fn post(lane: *mut Lane, task: impl FnOnce() + 'static) {
    let boxed: Box<Box<dyn FnOnce()>> = Box::new(Box::new(task));
    ((*(*lane).vtbl).post)(lane, run, Box::into_raw(boxed) as *mut c_void);
}

#[repr(C)]
struct OpVtbl {
    struct_size: usize,
    cancel: extern "C" fn(*mut Op),
    release: extern "C" fn(*mut Op),
}
type Op = Object<OpVtbl>;
extern "C" fn ignore(_: *mut Op) {}
struct Shared<T>(T);
unsafe impl<T> Sync for Shared<T> {}
static OP_VTBL: Shared<OpVtbl> = Shared(OpVtbl { struct_size: size_of::<OpVtbl>(), cancel: ignore, release: ignore });
static OP: Shared<Op> = Shared(Op { vtbl: &OP_VTBL.0 }); // no call here lasts: one handle serves all
unsafe fn give_op(op: *mut *mut Op) {
    if !op.is_null() {
        *op = &OP.0 as *const Op as *mut Op;
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Completion {
    ctx: *mut c_void,
    done: unsafe extern "C" fn(*mut c_void, *const Error),
}

#[repr(C)]
struct StreamEnd {
    struct_size: usize,
    delivered: u64,
    dropped: u64,
}
#[repr(C)]
#[derive(Clone, Copy)]
struct StreamEvents {
    struct_size: usize,
    ctx: *mut c_void,
    on_data: unsafe extern "C" fn(*mut c_void, u32, u32, Text),
    on_writable: unsafe extern "C" fn(*mut c_void),
    done: unsafe extern "C" fn(*mut c_void, *const Error, *const StreamEnd),
}
#[repr(C)]
struct Started {
    struct_size: usize,
    id: Text,
    pid: i64,
}
#[repr(C)]
struct Exit {
    struct_size: usize,
    outcome: u32,
    flags: u32,
    code: i32,
    signal: i32,
    started_at: i64,
    ended_at: i64,
}
#[repr(C)]
#[derive(Clone, Copy)]
struct ProcessEvents {
    struct_size: usize,
    ctx: *mut c_void,
    on_started: unsafe extern "C" fn(*mut c_void, *const Started),
    on_exit: unsafe extern "C" fn(*mut c_void, *const Exit),
}
#[repr(C)]
struct Command {
    struct_size: usize,
    shell: Text,
    argv: *const Text,
    argc: usize,
    env: *const c_void,
    env_count: usize,
    cwd: Text,
    user: Text,
    tty: *const c_void,
    stdin_mode: u32,
    output: u32,
    flags: u32,
    reserved: u32,
    timeout_ms: u64,
    grace_ms: u64,
    window: u64,
    tag: Text,
    request_id: Text,
}

#[repr(C)]
struct StreamVtbl {
    struct_size: usize,
    grant: unsafe extern "C" fn(*mut Stream, u64),
    write: unsafe extern "C" fn(*mut Stream, Text, u32, *mut usize, *const ErrorSink) -> Status,
    shutdown_write: unsafe extern "C" fn(*mut Stream, *const ErrorSink) -> Status,
    cancel: unsafe extern "C" fn(*mut Stream),
    release: unsafe extern "C" fn(*mut Stream),
}
#[repr(C)]
struct Stream {
    vtbl: *const StreamVtbl,
    owner: *mut Process,
}
#[repr(C)]
struct ProcessVtbl {
    struct_size: usize,
    stream: unsafe extern "C" fn(*mut Process) -> *mut Stream,
    signal: unsafe extern "C" fn(*mut Process, i32, u32, Completion, *mut *mut Op, *const ErrorSink) -> Status,
    release: unsafe extern "C" fn(*mut Process),
}
#[repr(C)]
struct Process {
    vtbl: *const ProcessVtbl,
    stream: Stream,
    lane: *mut Lane,
    io: StreamEvents,
    events: ProcessEvents,
    refs: AtomicU32, // the handle, the run, and each posted task
    credit: u64,
    queue: VecDeque<u8>,
    delivered: u64,
    dropped: u64,
    exited: bool,
    cancelled: bool,
    released: bool,
    over: bool,
}

unsafe fn later(p: *mut Process, task: impl FnOnce(*mut Process) + 'static) {
    (*p).refs.fetch_add(1, Ordering::Relaxed);
    post((*p).lane, move || {
        task(p);
        drop_one(p);
    });
}
unsafe fn drop_one(p: *mut Process) {
    if (*p).refs.fetch_sub(1, Ordering::AcqRel) == 1 {
        ((*(*(*p).lane).vtbl).release)((*p).lane);
        drop(Box::from_raw(p));
    }
}
unsafe fn deliver(p: *mut Process) {
    if (*p).over {
        return;
    }
    while !(*p).queue.is_empty() && (*p).credit > 0 && !(*p).cancelled {
        let n = (*p).queue.len().min((*p).credit as usize);
        let piece: Vec<u8> = (&mut (*p).queue).drain(..n).collect();
        (*p).credit -= n as u64;
        (*p).delivered += n as u64;
        ((*p).io.on_data)((*p).io.ctx, 1, 0, Text { ptr: piece.as_ptr(), len: n });
    }
    if (*p).cancelled || (*p).released {
        (*p).dropped += (*p).queue.len() as u64;
        (&mut (*p).queue).clear();
    }
    if !(*p).exited {
        (*p).exited = true;
        let outcome = if (*p).cancelled { 4 } else { 1 };
        let exit = Exit { struct_size: size_of::<Exit>(), outcome, flags: 0, code: 0, signal: 0, started_at: 0, ended_at: 0 };
        ((*p).events.on_exit)((*p).events.ctx, &exit);
    }
    if !(*p).queue.is_empty() {
        return;
    }
    (*p).over = true;
    let end = StreamEnd { struct_size: size_of::<StreamEnd>(), delivered: (*p).delivered, dropped: (*p).dropped };
    let error = Error::new(CANCELLED, "cancelled");
    ((*p).io.done)((*p).io.ctx, if (*p).cancelled { &error } else { null() }, &end);
    drop_one(p);
}

unsafe extern "C" fn grant(s: *mut Stream, n: u64) {
    later((*s).owner, move |p| {
        (*p).credit += n;
        deliver(p);
    });
}
unsafe extern "C" fn write(_: *mut Stream, _: Text, _: u32, _: *mut usize, err: *const ErrorSink) -> Status {
    refuse(err, CONFLICT, "echo reads nothing")
}
unsafe extern "C" fn shutdown_write(_: *mut Stream, _: *const ErrorSink) -> Status {
    OK
}
unsafe extern "C" fn cancel(s: *mut Stream) {
    later((*s).owner, |p| {
        (*p).cancelled = true;
        deliver(p);
    });
}
unsafe extern "C" fn keep(_: *mut Stream) {}
static STREAM: StreamVtbl = StreamVtbl { struct_size: size_of::<StreamVtbl>(), grant, write, shutdown_write, cancel, release: keep };

unsafe extern "C" fn stream(p: *mut Process) -> *mut Stream {
    &mut (*p).stream
}
unsafe extern "C" fn signal(_: *mut Process, _: i32, _: u32, _: Completion, _: *mut *mut Op, err: *const ErrorSink) -> Status {
    refuse(err, UNSUPPORTED, "no signals here")
}
unsafe extern "C" fn release_process(p: *mut Process) {
    later(p, |p| {
        (*p).released = true;
        deliver(p);
    });
    drop_one(p);
}
static PROCESS: ProcessVtbl = ProcessVtbl { struct_size: size_of::<ProcessVtbl>(), stream, signal, release: release_process };

#[repr(C)]
#[derive(Clone, Copy)]
struct StartEvents {
    struct_size: usize,
    ctx: *mut c_void,
    on_identity: unsafe extern "C" fn(*mut c_void, Text),
    done: unsafe extern "C" fn(*mut c_void, *const Error, *const StartResult),
}
#[repr(C)]
struct StartResult {
    struct_size: usize,
    outcome: u32,
    provenance: u32,
    sandbox_id: Text,
    working_directory: Text,
    template_pending_id: Text,
    template_retry_after_ms: u64,
    warnings: Text,
}
#[repr(C)]
#[derive(Clone, Copy)]
struct TextCompletion {
    ctx: *mut c_void,
    done: unsafe extern "C" fn(*mut c_void, *const Error, Text),
}
#[repr(C)]
#[derive(Clone, Copy)]
struct InfoCompletion {
    ctx: *mut c_void,
    done: unsafe extern "C" fn(*mut c_void, *const Error, *const c_void),
}
#[repr(C)]
struct SandboxVtbl {
    struct_size: usize,
    start: unsafe extern "C" fn(*mut Sandbox, *const c_void, *const StartEvents, *mut *mut Op, *const ErrorSink) -> Status,
    stop: unsafe extern "C" fn(*mut Sandbox, Completion, *mut *mut Op, *const ErrorSink) -> Status,
    destroy: unsafe extern "C" fn(*mut Sandbox, Completion, *mut *mut Op, *const ErrorSink) -> Status,
    info: unsafe extern "C" fn(*mut Sandbox, InfoCompletion, *mut *mut Op, *const ErrorSink) -> Status,
    instructions: unsafe extern "C" fn(*mut Sandbox, TextCompletion, *mut *mut Op, *const ErrorSink) -> Status,
    spawn: unsafe extern "C" fn(*mut Sandbox, *const Command, *const StreamEvents, *const ProcessEvents, *mut *mut Process, *const ErrorSink) -> Status,
    extension: unsafe extern "C" fn(*mut Sandbox, Text) -> *const c_void,
    release: unsafe extern "C" fn(*mut Sandbox),
}
#[repr(C)]
struct Sandbox {
    vtbl: *const SandboxVtbl,
    lane: *mut Lane,
}

unsafe extern "C" fn start(s: *mut Sandbox, _: *const c_void, events: *const StartEvents, op: *mut *mut Op, _: *const ErrorSink) -> Status {
    give_op(op);
    let told = *events;
    post((*s).lane, move || {
        let absent = Text { ptr: null(), len: 0 };
        let id = Text::of("box-1");
        let result = StartResult { struct_size: size_of::<StartResult>(), outcome: 1, provenance: 3, sandbox_id: id, working_directory: Text::of("/work"), template_pending_id: absent, template_retry_after_ms: NONE, warnings: absent };
        (told.on_identity)(told.ctx, id);
        (told.done)(told.ctx, null(), &result);
    });
    OK
}
unsafe extern "C" fn finish(s: *mut Sandbox, done: Completion, op: *mut *mut Op, _: *const ErrorSink) -> Status {
    give_op(op);
    post((*s).lane, move || (done.done)(done.ctx, null()));
    OK
}
unsafe extern "C" fn info(_: *mut Sandbox, _: InfoCompletion, _: *mut *mut Op, err: *const ErrorSink) -> Status {
    refuse(err, UNSUPPORTED, "nothing to tell")
}
unsafe extern "C" fn instructions(s: *mut Sandbox, done: TextCompletion, op: *mut *mut Op, _: *const ErrorSink) -> Status {
    give_op(op);
    post((*s).lane, move || (done.done)(done.ctx, null(), Text::of("A skeleton.")));
    OK
}
unsafe extern "C" fn spawn(s: *mut Sandbox, c: *const Command, io: *const StreamEvents, events: *const ProcessEvents, out: *mut *mut Process, _: *const ErrorSink) -> Status {
    let mut words: Vec<&[u8]> = Vec::new();
    for i in 1..(*c).argc {
        words.push((*(*c).argv.add(i)).bytes());
    }
    let mut line = words.join(&b' ');
    line.push(b'\n');
    ((*(*(*s).lane).vtbl).retain)((*s).lane);
    let p = Box::into_raw(Box::new(Process {
        vtbl: &PROCESS, stream: Stream { vtbl: &STREAM, owner: null_mut() }, lane: (*s).lane, io: *io, events: *events, refs: AtomicU32::new(2),
        credit: (*c).window, queue: line.into(), delivered: 0, dropped: 0, exited: false, cancelled: false, released: false, over: false,
    }));
    (*p).stream.owner = p;
    *out = p;
    later(p, |p| {
        let started = Started { struct_size: size_of::<Started>(), id: Text::of("1"), pid: 0 };
        ((*p).events.on_started)((*p).events.ctx, &started);
        deliver(p);
    });
    OK
}
unsafe extern "C" fn no_extension(_: *mut Sandbox, _: Text) -> *const c_void {
    null()
}
unsafe extern "C" fn release_sandbox(s: *mut Sandbox) {
    ((*(*(*s).lane).vtbl).release)((*s).lane);
    drop(Box::from_raw(s));
}
static SANDBOX: SandboxVtbl = SandboxVtbl { struct_size: size_of::<SandboxVtbl>(), start, stop: finish, destroy: finish, info, instructions, spawn, extension: no_extension, release: release_sandbox };

#[repr(C)]
struct CreateRequest {
    struct_size: usize,
    context: *mut c_void,
    lane: *mut Lane,
}
#[repr(C)]
struct DescribeResult {
    struct_size: usize,
    settings_schema: Text,
    describe: Text,
}
#[repr(C)]
#[derive(Clone, Copy)]
struct DescribeCompletion {
    ctx: *mut c_void,
    done: unsafe extern "C" fn(*mut c_void, *const Error, *const DescribeResult),
}
#[repr(C)]
struct ProviderVtbl {
    struct_size: usize,
    describe: unsafe extern "C" fn(*mut Provider, DescribeCompletion, *mut *mut Op, *const ErrorSink) -> Status,
    create: unsafe extern "C" fn(*mut Provider, *const CreateRequest, *mut *mut Sandbox, *const ErrorSink) -> Status,
    extension: unsafe extern "C" fn(*mut Provider, Text) -> *const c_void,
    release: unsafe extern "C" fn(*mut Provider),
}
#[repr(C)]
struct Provider {
    vtbl: *const ProviderVtbl,
    lane: *mut Lane,
}
unsafe extern "C" fn describe(p: *mut Provider, done: DescribeCompletion, op: *mut *mut Op, _: *const ErrorSink) -> Status {
    give_op(op);
    post((*p).lane, move || {
        let settings_schema = Text::of(r#"{"type":"object","properties":{},"additionalProperties":false}"#);
        let result = DescribeResult { struct_size: size_of::<DescribeResult>(), settings_schema, describe: Text::of(r#"{"features":[]}"#) };
        (done.done)(done.ctx, null(), &result);
    });
    OK
}
unsafe extern "C" fn create(_: *mut Provider, request: *const CreateRequest, out: *mut *mut Sandbox, _: *const ErrorSink) -> Status {
    let lane = (*request).lane;
    ((*(*lane).vtbl).retain)(lane);
    *out = Box::into_raw(Box::new(Sandbox { vtbl: &SANDBOX, lane }));
    OK
}
unsafe extern "C" fn no_provider_extension(_: *mut Provider, _: Text) -> *const c_void {
    null()
}
unsafe extern "C" fn release_provider(p: *mut Provider) {
    ((*(*(*p).lane).vtbl).release)((*p).lane);
    drop(Box::from_raw(p));
}
static PROVIDER: ProviderVtbl = ProviderVtbl { struct_size: size_of::<ProviderVtbl>(), describe, create, extension: no_provider_extension, release: release_provider };

#[repr(C)]
struct OpenRequest {
    struct_size: usize,
    provider: Text,
    options: Text,
    lane: *mut Lane,
}
#[repr(C)]
pub struct Plugin {
    struct_size: usize,
    abi_major: u32,
    abi_minor: u32,
    init: unsafe extern "C" fn(*mut c_void, *const ErrorSink) -> Status,
    open: unsafe extern "C" fn(*const OpenRequest, *mut *mut Provider, *const ErrorSink) -> Status,
}
unsafe extern "C" fn init(_: *mut c_void, _: *const ErrorSink) -> Status {
    OK
}
unsafe extern "C" fn open(request: *const OpenRequest, out: *mut *mut Provider, _: *const ErrorSink) -> Status {
    let lane = (*request).lane;
    ((*(*lane).vtbl).retain)(lane);
    *out = Box::into_raw(Box::new(Provider { vtbl: &PROVIDER, lane }));
    OK
}
static PLUGIN: Plugin = Plugin { struct_size: size_of::<Plugin>(), abi_major: 1, abi_minor: 0, init, open };

#[no_mangle]
pub extern "C" fn sandforge_plugin_entry_v1() -> *const Plugin {
    &PLUGIN
}
