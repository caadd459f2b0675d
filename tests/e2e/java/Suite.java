import static io.temporal.api.enums.v1.WorkflowIdConflictPolicy.WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING;
import static io.temporal.api.enums.v1.WorkflowIdConflictPolicy.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING;
import static io.temporal.api.enums.v1.WorkflowIdReusePolicy.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE;

import io.temporal.api.enums.v1.IndexedValueType;
import io.temporal.api.operatorservice.v1.AddSearchAttributesRequest;
import io.temporal.client.UpdateOptions;
import io.temporal.client.WorkflowClient;
import io.temporal.client.WorkflowExecutionAlreadyStarted;
import io.temporal.client.WorkflowFailedException;
import io.temporal.client.WorkflowNotFoundException;
import io.temporal.client.WorkflowOptions;
import io.temporal.client.WorkflowQueryException;
import io.temporal.client.WorkflowStub;
import io.temporal.client.WorkflowUpdateException;
import io.temporal.client.WorkflowUpdateStage;
import io.temporal.failure.ActivityFailure;
import io.temporal.failure.ApplicationFailure;
import io.temporal.failure.CanceledFailure;
import io.temporal.failure.TerminatedFailure;
import io.temporal.serviceclient.OperatorServiceStubs;
import io.temporal.serviceclient.OperatorServiceStubsOptions;
import io.temporal.serviceclient.WorkflowServiceStubs;
import io.temporal.serviceclient.WorkflowServiceStubsOptions;
import io.temporal.worker.Worker;
import io.temporal.worker.WorkerFactory;
import io.temporal.worker.WorkerFactoryOptions;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;

/**
 * The scenarios of the list with the Java SDK, 5 copies at once, result and events checked.
 *
 * <p>Suite [-uncached] HOLDFAST SCRATCH. Without a cache is a cache for one run here: the SDK has no smaller one.
 */
public final class Suite {
  private static final int COPIES = 5;
  private static final String START = "WorkflowExecutionStarted ";
  private static final String END = "WorkflowExecutionCompleted";
  private static final String SIGNALED = "WorkflowExecutionSignaled ";
  private static final String ACTIVITY = "ActivityTaskScheduled ActivityTaskStarted ActivityTaskCompleted ";
  private static final String TIMER = "TimerStarted TimerFired ";
  private static final String CHILD = "StartChildWorkflowExecutionInitiated ChildWorkflowExecutionStarted ";
  private static final String UPDATE = "WorkflowExecutionUpdateAccepted " + ACTIVITY + "WorkflowExecutionUpdateCompleted ";

  private interface Body {
    void go(Here c) throws Exception;
  }

  /** `events` are all but those of workflow tasks, in order; null = not compared. */
  private record Scenario(String name, String events, Body body) {}

  /** What a copy of a scenario has. */
  private record Here(WorkflowClient client, String id) {
    WorkflowStub stub(String type, String id, UnaryOperator<WorkflowOptions.Builder> more) {
      return client.newUntypedWorkflowStub(type, more.apply(WorkflowOptions.newBuilder().setTaskQueue("q").setWorkflowId(id)).build());
    }

    WorkflowStub begin(String type, Object... args) {
      WorkflowStub stub = stub(type, id, o -> o);
      stub.start(args);
      return stub;
    }

    List<String> types() {
      return client.fetchHistory(id).getEvents().stream()
          .map(e -> e.getEventType().name().replace("EVENT_TYPE_", "").split("_"))
          .map(words -> Arrays.stream(words).map(w -> w.charAt(0) + w.substring(1).toLowerCase()).collect(Collectors.joining()))
          .toList();
    }
  }

  private static void equal(Object a, Object b) {
    if (!Objects.equals(a, b)) throw new AssertionError(a + " is not " + b);
  }

  private static void until(String what, BooleanSupplier ask) throws InterruptedException {
    for (int i = 0; i < 6000; i++) {
      if (ask.getAsBoolean()) return;
      Thread.sleep(10);
    }
    throw new AssertionError("never: " + what);
  }

  /** The call fails with an exception of the type. */
  private static <T extends Throwable> T fails(Class<T> type, Runnable call) {
    try {
      call.run();
    } catch (Throwable e) {
      if (type.isInstance(e)) return type.cast(e);
      throw new AssertionError(type.getSimpleName() + " expected, not " + e, e);
    }
    throw new AssertionError(type.getSimpleName() + " expected");
  }

  private static <T extends Throwable> T endsWith(Class<T> cause, WorkflowStub stub) {
    Throwable why = fails(WorkflowFailedException.class, () -> stub.getResult(Void.class)).getCause();
    if (!cause.isInstance(why)) throw new AssertionError(cause.getSimpleName() + " expected, not " + why, why);
    return cause.cast(why);
  }

  private static <T> UpdateOptions<T> update(Class<T> type, String name, String id, WorkflowUpdateStage stage) {
    UpdateOptions.Builder<T> options = UpdateOptions.newBuilder(type).setUpdateName(name).setWaitForStage(stage);
    return (id != null ? options.setUpdateId(id) : options).build();
  }

  // ---- Scenarios

  private static final List<Scenario> SCENARIOS = List.of(
      new Scenario("hello", START + ACTIVITY + END, c -> equal(c.begin("hello", "world").getResult(String.class), "hello world")),
      new Scenario("retry", START + ACTIVITY + END, c -> equal(c.begin("retries").getResult(String.class), "attempt 3")),
      new Scenario("chain", START + "ActivityTaskScheduled ActivityTaskStarted ActivityTaskFailed WorkflowExecutionFailed", c -> {
        ApplicationFailure why = (ApplicationFailure) endsWith(ActivityFailure.class, c.begin("failureChain")).getCause();
        equal(List.of(why.getOriginalMessage(), why.getType(), why.getDetails().get(Map.class).get("code")), List.of("no such card", "CardError", 7));
      }),
      new Scenario("localActivity", START + "MarkerRecorded MarkerRecorded " + END, c ->
          equal(c.begin("localActivity", "x").getResult(String.class), "hello hello x")),
      new Scenario("longLocalActivity", START + "MarkerRecorded " + END, c ->
          equal(c.begin("longLocalActivity", 12000L).getResult(String.class), "slow")),
      new Scenario("timer", START + TIMER + END, c -> equal(c.begin("timer", 30L).getResult(String.class), "slept")),
      new Scenario("timerCancel", START + "TimerStarted TimerStarted TimerFired TimerCanceled " + END, c ->
          equal(c.begin("timerCancel").getResult(String.class), "canceled")),
      new Scenario("signal", START + SIGNALED + SIGNALED + SIGNALED + END, c -> {
        WorkflowStub stub = c.begin("signals", 3);
        for (String x : List.of("1", "2", "3")) stub.signal("put", x);
        equal(stub.getResult(List.class), List.of("1", "2", "3"));
      }),
      new Scenario("signalWithStart", START + SIGNALED + SIGNALED + END, c -> {
        WorkflowStub one = c.stub("signals", c.id, o -> o);
        WorkflowStub two = c.stub("signals", c.id, o -> o);
        String first = one.signalWithStart("put", new Object[] {"a"}, new Object[] {2}).getRunId();
        equal(two.signalWithStart("put", new Object[] {"b"}, new Object[] {2}).getRunId(), first);
        equal(two.getResult(List.class), List.of("a", "b"));
      }),
      new Scenario("query", START + SIGNALED + END, c -> {
        WorkflowStub stub = c.begin("signals", 1);
        equal(stub.query("get", List.class), List.of());
        fails(WorkflowQueryException.class, () -> stub.query("nobody", List.class));
        stub.signal("put", "x");
        stub.getResult(List.class);
        equal(stub.query("get", List.class), List.of("x"));
      }),
      new Scenario("update", START + UPDATE + UPDATE + SIGNALED + END, c -> {
        WorkflowStub stub = c.begin("updates");
        equal(stub.update("add", Integer.class, 3), 3);
        ApplicationFailure why = (ApplicationFailure) fails(WorkflowUpdateException.class, () -> stub.update("add", Integer.class, -1)).getCause();
        equal(why.getOriginalMessage(), "negative");
        equal(stub.update("add", Integer.class, 4), 7);
        stub.signal("done");
        equal(stub.getResult(Integer.class), 7);
      }),
      new Scenario("updateAccepted", START + "WorkflowExecutionUpdateAccepted " + TIMER + "WorkflowExecutionUpdateCompleted " + SIGNALED + END, c -> {
        WorkflowStub stub = c.begin("updates");
        UpdateOptions<String> options = update(String.class, "slow", "u", WorkflowUpdateStage.ACCEPTED);
        equal(stub.startUpdate(options, 40L).getResult(), "slow");
        equal(stub.getUpdateHandle("u", String.class).getResult(), "slow");
        equal(stub.startUpdate(options, 3600000L).getResult(), "slow");
        stub.signal("done");
        equal(stub.getResult(Integer.class), 0);
      }),
      new Scenario("updateWithStart", START + UPDATE + UPDATE + SIGNALED + END, c -> {
        UpdateOptions<Integer> options = update(Integer.class, "add", null, WorkflowUpdateStage.COMPLETED);
        UnaryOperator<WorkflowOptions.Builder> use = o -> o.setWorkflowIdConflictPolicy(WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING);
        equal(c.stub("updates", c.id, use).executeUpdateWithStart(options, new Object[] {5}, new Object[] {}), 5);
        WorkflowStub stub = c.stub("updates", c.id, use);
        equal(stub.executeUpdateWithStart(options, new Object[] {1}, new Object[] {}), 6);
        stub.signal("done");
        equal(stub.getResult(Integer.class), 6);
      }),
      new Scenario("cancel", START + "TimerStarted WorkflowExecutionCancelRequested TimerCanceled " + ACTIVITY + "WorkflowExecutionCanceled", c -> {
        WorkflowStub stub = c.begin("cancelable");
        until("the timer", () -> c.types().contains("TimerStarted"));
        stub.cancel();
        endsWith(CanceledFailure.class, stub);
        stub.cancel();
      }),
      new Scenario("activityCancel",
          START + "ActivityTaskScheduled " + SIGNALED + "ActivityTaskCancelRequested ActivityTaskStarted ActivityTaskCanceled " + END, c -> {
        WorkflowStub stub = c.begin("cancelsActivity");
        until("it has begun", () -> Flows.begun.contains(c.id));
        stub.signal("done");
        equal(stub.getResult(String.class), "canceled");
      }),
      new Scenario("terminate", START + "WorkflowExecutionTerminated", c -> {
        WorkflowStub stub = c.begin("forever");
        stub.terminate("enough", "because");
        endsWith(TerminatedFailure.class, stub);
        fails(WorkflowNotFoundException.class, () -> stub.terminate(""));
        fails(WorkflowNotFoundException.class, () -> stub.signal("put", "x"));
      }),
      new Scenario("child", START + CHILD + "ChildWorkflowExecutionCompleted " + END, c ->
          equal(c.begin("parent", "kid").getResult(String.class), "hello kid")),
      new Scenario("childFails", START + CHILD + "ChildWorkflowExecutionFailed " + END, c ->
          equal(c.begin("parentOfFailing").getResult(String.class), "no such card")),
      new Scenario("continueAsNew", START + END, c -> equal(c.begin("again", 2).getResult(String.class), "last")),
      new Scenario("patch", null, c -> {
        WorkflowStub stub = c.stub("patched", c.id, o -> o.setMemo(Map.of("note", "first")));
        stub.start();
        equal(stub.getResult(List.class), List.of("new", "blue"));
      }),
      new Scenario("failingTask", START + "MarkerRecorded " + END, c -> {
        WorkflowStub stub = c.stub("recovers", c.id, o -> o.setWorkflowTaskTimeout(Duration.ofSeconds(1)));
        stub.start();
        equal(stub.getResult(String.class), "recovered");
      }),
      new Scenario("externalSignal", START + "SignalExternalWorkflowExecutionInitiated ExternalWorkflowExecutionSignaled " + END, c -> {
        WorkflowStub other = c.stub("signals", c.id + "/other", o -> o);
        other.start(1);
        equal(c.begin("signalsAnother", c.id + "/other").getResult(String.class), "sent");
        equal(other.getResult(List.class), List.of(c.id));
      }),
      new Scenario("externalCancel", START + "RequestCancelExternalWorkflowExecutionInitiated ExternalWorkflowExecutionCancelRequested " + END, c -> {
        WorkflowStub other = c.stub("forever", c.id + "/other", o -> o);
        other.start();
        equal(c.begin("cancelsAnother", c.id + "/other").getResult(String.class), "asked");
        endsWith(CanceledFailure.class, other);
      }),
      new Scenario("duplicateId", START + TIMER + END, c -> {
        String first = c.begin("forever").getExecution().getRunId();
        fails(WorkflowExecutionAlreadyStarted.class, () -> c.begin("forever"));
        WorkflowStub same = c.stub("forever", c.id, o -> o.setWorkflowIdConflictPolicy(WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING));
        equal(same.start().getRunId(), first);
        WorkflowStub next = c.stub("timer", c.id, o -> o.setWorkflowIdConflictPolicy(WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING));
        next.start(1L);
        equal(next.getResult(String.class), "slept");
        WorkflowStub never = c.stub("forever", c.id, o -> o.setWorkflowIdReusePolicy(WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE));
        fails(WorkflowExecutionAlreadyStarted.class, never::start);
      }),
      new Scenario("notFound", null, c -> {
        WorkflowStub nobody = c.client.newUntypedWorkflowStub(c.id);
        fails(WorkflowNotFoundException.class, nobody::describe);
        fails(WorkflowNotFoundException.class, () -> nobody.signal("put", "x"));
        fails(WorkflowNotFoundException.class, () -> nobody.query("get", List.class));
        fails(WorkflowNotFoundException.class, nobody::cancel);
        fails(WorkflowNotFoundException.class, () -> nobody.terminate(""));
      }),
      new Scenario("asyncCompletion", START + ACTIVITY + END, c -> {
        WorkflowStub stub = c.begin("asynchronous");
        until("the token", () -> Flows.tokens.containsKey(c.id));
        c.client.newActivityCompletionClient().heartbeat(Flows.tokens.get(c.id), "half");
        c.client.newActivityCompletionClient().complete(Flows.tokens.get(c.id), "from outside");
        equal(stub.getResult(String.class), "from outside");
      }),
      new Scenario("describeAndList", START + "WorkflowExecutionTerminated", c -> {
        WorkflowStub stub = c.begin("forever");
        equal(stub.describe().getStatus().name(), "WORKFLOW_EXECUTION_STATUS_RUNNING");
        stub.terminate("");
        String query = "WorkflowId = '" + c.id + "' AND ExecutionStatus = 'Terminated'";
        until("it is listed", () -> c.client.listExecutions(query).count() == 1);
        equal(c.client.countWorkflows(query).getCount(), 1L);
      }));

  // ---- Running

  private static void one(Here c, Scenario scenario) throws Exception {
    scenario.body.go(c);
    if (scenario.events != null) {
      equal(c.types().stream().filter(t -> !t.startsWith("WorkflowTask")).collect(Collectors.joining(" ")), scenario.events);
    }
  }

  /** Why the first copy that failed did; null = none. */
  private static Throwable all(WorkflowClient client, ExecutorService threads, Scenario scenario) throws InterruptedException {
    List<Future<?>> copies = new ArrayList<>();
    for (int i = 0; i < (scenario.name.equals("longLocalActivity") ? 1 : COPIES); i++) {
      Here here = new Here(client, scenario.name + "-" + i);
      copies.add(threads.submit(() -> {
        one(here, scenario);
        return null;
      }));
    }
    Throwable problem = null;
    for (Future<?> copy : copies) {
      try {
        copy.get(2, TimeUnit.MINUTES);
      } catch (InterruptedException e) {
        throw e;
      } catch (Exception e) {
        problem = problem != null ? problem : e.getCause() != null ? e.getCause() : e;
      }
    }
    return problem;
  }

  private static Process serve(String program, Path folder) throws Exception {
    return new ProcessBuilder(program, "serve", "--store", "sqlite:" + folder.resolve("e2e.db"), "--listen", "127.0.0.1:0", "--log-level", "warn")
        .redirectError(ProcessBuilder.Redirect.INHERIT)
        .start();
  }

  public static void main(String[] args) throws Exception {
    boolean uncached = args[0].equals("-uncached");
    String program = args[uncached ? 1 : 0];
    Path folder = Files.createTempDirectory(new File(args[uncached ? 2 : 1]).toPath(), "run-");
    Process server = serve(program, folder);
    Runtime.getRuntime().addShutdownHook(new Thread(server::destroyForcibly));
    String line = new BufferedReader(new InputStreamReader(server.getInputStream())).readLine();
    String address = "127.0.0.1" + line.substring(line.lastIndexOf(':'));
    WorkflowServiceStubs service = WorkflowServiceStubs.newConnectedServiceStubs(
        WorkflowServiceStubsOptions.newBuilder().setTarget(address).build(), Duration.ofSeconds(30));
    OperatorServiceStubs operator = OperatorServiceStubs.newServiceStubs(OperatorServiceStubsOptions.newBuilder().setTarget(address).validateAndBuildWithDefaults());
    operator.blockingStub().addSearchAttributes(AddSearchAttributesRequest.newBuilder()
        .setNamespace("default")
        .putSearchAttributes("CustomKeywordField", IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD)
        .build());
    WorkflowClient client = WorkflowClient.newInstance(service);
    WorkerFactoryOptions.Builder options = WorkerFactoryOptions.newBuilder();
    WorkerFactory factory = WorkerFactory.newInstance(client, (uncached ? options.setWorkflowCacheSize(1) : options).build());
    Worker worker = factory.newWorker("q");
    worker.registerWorkflowImplementationTypes(Flows.ALL);
    worker.registerActivitiesImplementations(new Flows.ActsImpl());
    factory.start();
    ExecutorService threads = Executors.newCachedThreadPool();
    long begin = System.nanoTime();
    int failed = 0;
    for (Scenario scenario : SCENARIOS) {
      long since = System.nanoTime();
      Throwable problem = all(client, threads, scenario);
      String name = scenario.name + (uncached ? ", a cache for one" : ", cached");
      if (problem != null) {
        failed++;
        System.out.println("[  FAILED  ] " + name + ": " + problem);
        problem.printStackTrace(System.out);
      } else {
        System.out.println("[       OK ] " + name + " (" + (System.nanoTime() - since) / 1000000 + " ms)");
      }
    }
    factory.shutdown();
    factory.awaitTermination(1, TimeUnit.MINUTES);
    operator.shutdownNow();
    service.shutdownNow();
    server.destroy(); // SIGTERM
    int code = server.waitFor();
    if (code != 0) {
      failed++;
      System.out.println("[  FAILED  ] the server exits with " + code);
    }
    System.out.printf("[==========] %d passed, %d failed in %d s%n", SCENARIOS.size() - failed, failed, (System.nanoTime() - begin) / 1000000000);
    System.exit(failed > 0 ? 1 : 0);
  }
}
