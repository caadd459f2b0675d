# Fibers in gdb: (gdb) source holdfast.py, or by itself when libholdfast is loaded from an installed tree.
#
#   fibers          all fibers of the process: number, state, name, scope, and what each waits for
#   fiber N         bt, up, info locals and the like show this fiber, below one frame of the thread that was selected
#   fiber N bt      the backtrace of this fiber
#   fiber none      they show the thread again
#
# A fiber that does not run is its stack pointer; its registers lie on its stack (src/base/switch_*.S). An unwinder gives them to gdb as the
# caller of the selected thread's innermost frame, so nothing of the process is changed, and core files work, too. The tree of scopes
# and branches is read as hf_dump reads it (src/fiber/watch/snapshot.c). It needs the debug information of libholdfast.
import gdb
import gdb.unwinder

STATE_WORDS = {"running": "runs", "ready": "ready", "parked": "waits", "lost": "lost its thread"}


class Fiber:
    def __init__(self, value, scope):
        self.value = value
        self.scope = scope
        self.address = int(value.address)

    def state(self):
        sched = self.value["sched"]
        if int(self.value["lost"]) != 0:
            return "lost"
        if int(sched) != 0 and int(sched["current"]) == self.address:
            return "running"
        return "parked" if int(self.value["wait"]) != 0 else "ready"

    def name(self):
        branch = self.value["branch"]
        return text_of(branch["name"]) if int(branch) != 0 else ""

    def wait(self):
        wait = self.value["wait"]
        if int(wait) == 0:
            return ""
        said = text_of(wait["kind"]["verb"])
        what = text_of(wait["object_name"])
        place = ""
        if int(self.value["file"]) != 0:
            place = " at %s:%d" % (text_of(self.value["file"]), int(self.value["line"]))
        return said + (" on '%s'" % what if what else "") + place

    def registers(self):
        """Where it goes on: a dictionary of registers, or None if it runs."""
        if self.state() == "running":
            return None
        sp = int(self.value["context"]["sp"])
        arch = gdb.selected_inferior().architecture().name()
        if "x86-64" in arch:
            at = sp
            names = ["r15", "r14", "r13", "r12", "rbx", "rbp", "rip"]
            if not is_code(word_at(at + 48)) and is_code(word_at(at + 56)):
                at += 8  # built with HF_SWITCH_FPU=1
            regs = {name: word_at(at + 8 * i) for i, name in enumerate(names)}
            regs["rsp"] = at + 8 * len(names)
            return regs
        if "aarch64" in arch:
            regs = {"x%d" % (19 + i): word_at(sp + 64 + 8 * i) for i in range(12)}
            regs["pc"] = regs["x30"]
            regs["sp"] = sp + 160
            return regs
        raise gdb.GdbError("fibers of the architecture %s are not known" % arch)


def text_of(pointer):
    if int(pointer) == 0:
        return ""
    try:
        return pointer.string("utf-8", "replace", length=-1)
    except gdb.MemoryError:
        return "?"


def word_at(address):
    return int(gdb.Value(address).cast(gdb.lookup_type("unsigned long").pointer()).dereference())


def is_code(address):
    return gdb.block_for_pc(address) is not None


def type_of(name):
    try:
        return gdb.lookup_type(name)
    except gdb.error:
        raise gdb.GdbError("libholdfast has no debug information here: build or install it with -g")


def offset_of(type_, field):
    return next(f.bitpos // 8 for f in type_.fields() if f.name == field)


def each_of(list_, type_, field):
    """The objects of an intrusive list."""
    head = list_["head"]
    node = head["next"]
    back = offset_of(type_, field)
    while int(node) != 0 and int(node) != int(head.address):
        yield gdb.Value(int(node) - back).cast(type_.pointer()).dereference()
        node = node["next"]


def runtimes():
    """Those of all threads: each has its own fiber in a thread-local variable."""
    fiber_type = type_of("struct hf_fiber").pointer()
    found = {}
    was = gdb.selected_thread()
    frame = gdb.selected_frame() if was is not None else None
    for thread in gdb.selected_inferior().threads():
        thread.switch()
        try:
            current = gdb.parse_and_eval("hf_current").cast(fiber_type)
            if int(current) != 0 and int(current["rt"]) != 0:
                found[int(current["rt"])] = current["rt"].dereference()
        except gdb.error:
            continue  # a thread that is just beginning
    if was is not None:
        was.switch()
        frame.select()
    return list(found.values())


def scopes_from(scope, seen):
    """The scope, and all that are open below it."""
    if int(scope.address) in seen:
        return
    seen.add(int(scope.address))
    yield scope
    branch_type = type_of("struct hf_branch")
    for branch in each_of(scope["children"], branch_type, "siblings"):
        fiber = branch["fiber"]
        if int(fiber) == 0:
            continue
        inner = fiber["scope"]
        chain = []
        while int(inner) != 0:
            chain.append(inner.dereference())
            inner = inner["outer"]
        for each in reversed(chain):
            yield from scopes_from(each, seen)


def fibers():
    scope_type = type_of("struct hf_scope")
    branch_type = type_of("struct hf_branch")
    found = {}
    seen = set()
    for rt in runtimes():
        for roots in ("roots", "parked"):
            for root in each_of(rt[roots], scope_type, "roots"):
                for scope in scopes_from(root, seen):
                    for branch in each_of(scope["children"], branch_type, "siblings"):
                        fiber = branch["fiber"]
                        if int(fiber) != 0 and int(fiber["sched"]) != 0 and int(fiber) not in found:
                            found[int(fiber)] = Fiber(fiber.dereference(), scope)
    return sorted(found.values(), key=lambda each: int(each.value["id"]))


class FrameId:
    def __init__(self, sp, pc):
        self.sp = sp
        self.pc = pc


class FiberUnwinder(gdb.unwinder.Unwinder):
    """Puts the chosen fiber below the innermost frame of the thread that was selected when it was chosen."""

    def __init__(self):
        super().__init__("holdfast-fiber")
        self.registers = None
        self.thread = None
        self.sp = None

    def __call__(self, pending):
        if self.registers is None or gdb.selected_thread() is None:
            return None
        if gdb.selected_thread().ptid != self.thread:
            return None
        name = "rsp" if "rsp" in self.registers else "sp"
        if int(pending.read_register(name)) & (2**64 - 1) != self.sp:
            return None
        pc = pending.read_register("rip" if name == "rsp" else "pc")
        info = pending.create_unwind_info(FrameId(gdb.Value(self.sp), pc))
        word = gdb.lookup_type("unsigned long")
        for register, value in self.registers.items():
            info.add_saved_register(register, gdb.Value(value).cast(word))
        return info

    def choose(self, registers):
        self.registers = None
        gdb.invalidate_cached_frames()
        if registers is not None:
            frame = gdb.newest_frame()
            self.thread = gdb.selected_thread().ptid
            self.sp = int(frame.read_register("rsp" if "rsp" in registers else "sp")) & (2**64 - 1)
            self.registers = registers
            gdb.invalidate_cached_frames()


UNWINDER = FiberUnwinder()
gdb.unwinder.register_unwinder(None, UNWINDER, True)


def put_backtrace():
    """All frames but the first, which is the thread's."""
    frame = gdb.newest_frame().older()
    number = 0
    while frame is not None and frame.is_valid():
        line = frame.find_sal()
        place = " at %s:%d" % (line.symtab.filename, line.line) if line is not None and line.symtab else ""
        print("#%-3d 0x%016x in %s%s" % (number, frame.pc(), frame.name() or "??", place))
        frame = frame.older()
        number += 1


class FibersCommand(gdb.Command):
    """fibers: all fibers of the process, with their scope and what they wait for."""

    def __init__(self):
        super().__init__("fibers", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        UNWINDER.choose(None)
        all_ = fibers()
        for number, fiber in enumerate(all_, 1):
            scope = text_of(fiber.scope["name"]) or "scope %d" % int(fiber.scope["id"])
            print("%4d  %-8s %-20s in %-16s %s" % (number, STATE_WORDS[fiber.state()], fiber.name() or "(no name)", scope,
                                                  fiber.wait()))
        if not all_:
            print("there are no fibers: no runtime of holdfast runs in this process, or all of its work is done")


class FiberCommand(gdb.Command):
    """fiber N [bt]: shows one fiber of the list `fibers`. fiber none: the thread again."""

    def __init__(self):
        super().__init__("fiber", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        words = gdb.string_to_argv(argument)
        if words == ["none"]:
            UNWINDER.choose(None)
            return
        UNWINDER.choose(None)
        all_ = fibers()
        if len(words) not in (1, 2) or not words[0].isdigit() or not 1 <= int(words[0]) <= len(all_):
            raise gdb.GdbError("give a number of the list that `fibers` prints, 1 to %d, or none" % len(all_))
        if len(words) == 2 and words[1] != "bt":
            raise gdb.GdbError("fiber N bt, or fiber N and then any command for stacks")
        registers = all_[int(words[0]) - 1].registers()
        if registers is None:
            raise gdb.GdbError("fiber %s runs: it is one of the threads (info threads)" % words[0])
        UNWINDER.choose(registers)
        if len(words) == 2:
            try:
                put_backtrace()
            finally:
                UNWINDER.choose(None)
        else:
            print("bt, up and the like show fiber %s from frame 1 on; `fiber none` ends that" % words[0])


FibersCommand()
FiberCommand()
