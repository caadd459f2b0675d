import io.temporal.activity.Activity;
import io.temporal.activity.ActivityCancellationType;
import io.temporal.activity.ActivityExecutionContext;
import io.temporal.activity.ActivityInterface;
import io.temporal.activity.ActivityOptions;
import io.temporal.activity.LocalActivityOptions;
import io.temporal.common.RetryOptions;
import io.temporal.common.SearchAttributeKey;
import io.temporal.failure.ActivityFailure;
import io.temporal.failure.ApplicationFailure;
import io.temporal.failure.CanceledFailure;
import io.temporal.failure.ChildWorkflowFailure;
import io.temporal.workflow.Async;
import io.temporal.workflow.CancellationScope;
import io.temporal.workflow.ChildWorkflowOptions;
import io.temporal.workflow.Promise;
import io.temporal.workflow.QueryMethod;
import io.temporal.workflow.SignalMethod;
import io.temporal.workflow.UpdateMethod;
import io.temporal.workflow.UpdateValidatorMethod;
import io.temporal.workflow.Workflow;
import io.temporal.workflow.WorkflowInterface;
import io.temporal.workflow.WorkflowMethod;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** What runs in the worker: activities, and workflows with an interface each, of which the name is the type. */
public final class Flows {
  static final SearchAttributeKey<String> KEYWORD = SearchAttributeKey.forKeyword("CustomKeywordField");

  // What activities tell the scenarios, by the id of the workflow.
  static final Map<String, byte[]> tokens = new ConcurrentHashMap<>();
  static final Set<String> begun = ConcurrentHashMap.newKeySet();
  static final Map<String, Integer> counts = new ConcurrentHashMap<>();

  // ---- Activities

  @ActivityInterface
  public interface Acts {
    String greet(String who);

    int add(int a, int b);

    String slow(long millis);

    String failTwice();

    void failForGood(String why);

    void beat();

    String complete(String id);

    int countAttempts(String id);
  }

  static final class ActsImpl implements Acts {
    public String greet(String who) {
      return "hello " + who;
    }

    public int add(int a, int b) {
      return a + b;
    }

    public String slow(long millis) {
      pause(millis);
      return "slow";
    }

    public String failTwice() {
      int attempt = Activity.getExecutionContext().getInfo().getAttempt();
      if (attempt < 3) throw new IllegalStateException("attempt " + attempt);
      return "attempt " + attempt;
    }

    public void failForGood(String why) {
      throw ApplicationFailure.newNonRetryableFailure(why, "CardError", Map.of("code", 7));
    }

    public void beat() {
      ActivityExecutionContext here = Activity.getExecutionContext();
      begun.add(here.getInfo().getWorkflowId());
      for (; ; ) {
        here.heartbeat("alive"); // which throws when it is canceled
        pause(50);
      }
    }

    public String complete(String id) {
      ActivityExecutionContext here = Activity.getExecutionContext();
      tokens.put(id, here.getTaskToken());
      here.doNotCompleteOnReturn();
      return null;
    }

    public int countAttempts(String id) {
      return counts.merge(id, 1, Integer::sum);
    }

    private static void pause(long millis) {
      try {
        Thread.sleep(millis);
      } catch (InterruptedException e) {
        throw new IllegalStateException(e);
      }
    }
  }

  private static Acts remote() {
    return Workflow.newActivityStub(
        Acts.class,
        ActivityOptions.newBuilder()
            .setStartToCloseTimeout(Duration.ofMinutes(1))
            .setRetryOptions(RetryOptions.newBuilder().setInitialInterval(Duration.ofMillis(10)).setMaximumAttempts(5).build())
            .build());
  }

  private static Acts local() {
    return Workflow.newLocalActivityStub(
        Acts.class, LocalActivityOptions.newBuilder().setStartToCloseTimeout(Duration.ofMinutes(1)).build());
  }

  // ---- Workflows

  @WorkflowInterface
  public interface Hello {
    @WorkflowMethod(name = "hello")
    String run(String who);
  }

  public static final class HelloImpl implements Hello {
    public String run(String who) {
      return remote().greet(who);
    }
  }

  @WorkflowInterface
  public interface Retries {
    @WorkflowMethod(name = "retries")
    String run();
  }

  public static final class RetriesImpl implements Retries {
    public String run() {
      return remote().failTwice();
    }
  }

  @WorkflowInterface
  public interface FailureChain {
    @WorkflowMethod(name = "failureChain")
    void run();
  }

  public static final class FailureChainImpl implements FailureChain {
    public void run() {
      remote().failForGood("no such card");
    }
  }

  @WorkflowInterface
  public interface LocalActivity {
    @WorkflowMethod(name = "localActivity")
    String run(String who);
  }

  public static final class LocalActivityImpl implements LocalActivity {
    public String run(String who) {
      return local().greet(local().greet(who));
    }
  }

  @WorkflowInterface
  public interface LongLocalActivity {
    @WorkflowMethod(name = "longLocalActivity")
    String run(long millis);
  }

  public static final class LongLocalActivityImpl implements LongLocalActivity {
    public String run(long millis) {
      return local().slow(millis);
    }
  }

  @WorkflowInterface
  public interface Timer {
    @WorkflowMethod(name = "timer")
    String run(long millis);
  }

  public static final class TimerImpl implements Timer {
    public String run(long millis) {
      Workflow.sleep(Duration.ofMillis(millis));
      return "slept";
    }
  }

  @WorkflowInterface
  public interface TimerCancel {
    @WorkflowMethod(name = "timerCancel")
    String run();
  }

  public static final class TimerCancelImpl implements TimerCancel {
    public String run() {
      List<Promise<Void>> timer = new ArrayList<>();
      CancellationScope scope = Workflow.newCancellationScope(() -> timer.add(Workflow.newTimer(Duration.ofHours(1))));
      scope.run();
      Workflow.sleep(Duration.ofMillis(10));
      scope.cancel();
      try {
        timer.get(0).get();
        return "slept";
      } catch (CanceledFailure e) {
        return "canceled";
      }
    }
  }

  @WorkflowInterface
  public interface Signals {
    @WorkflowMethod(name = "signals")
    List<String> run(int count);

    @SignalMethod
    void put(String value);

    @QueryMethod
    List<String> get();
  }

  public static final class SignalsImpl implements Signals {
    private final List<String> got = new ArrayList<>();

    public List<String> run(int count) {
      Workflow.await(() -> got.size() >= count);
      return got;
    }

    public void put(String value) {
      got.add(value);
    }

    public List<String> get() {
      return got;
    }
  }

  @WorkflowInterface
  public interface Updates {
    @WorkflowMethod(name = "updates")
    int run();

    @UpdateMethod
    int add(int n);

    @UpdateValidatorMethod(updateName = "add")
    void checkAdd(int n);

    @UpdateMethod
    String slow(long millis);

    @SignalMethod
    void done();
  }

  public static final class UpdatesImpl implements Updates {
    private int sum;
    private boolean isDone;

    public int run() {
      Workflow.await(() -> isDone && Workflow.isEveryHandlerFinished());
      return sum;
    }

    public int add(int n) {
      sum += remote().add(n, 0);
      return sum;
    }

    public void checkAdd(int n) {
      if (n < 0) throw new IllegalArgumentException("negative");
    }

    public String slow(long millis) {
      Workflow.sleep(Duration.ofMillis(millis));
      return "slow";
    }

    public void done() {
      isDone = true;
    }
  }

  @WorkflowInterface
  public interface Cancelable {
    @WorkflowMethod(name = "cancelable")
    void run();
  }

  public static final class CancelableImpl implements Cancelable {
    public void run() {
      try {
        Workflow.sleep(Duration.ofHours(1));
      } catch (CanceledFailure e) {
        Workflow.newDetachedCancellationScope(() -> remote().greet("cleanup")).run();
        throw e;
      }
    }
  }

  @WorkflowInterface
  public interface CancelsActivity {
    @WorkflowMethod(name = "cancelsActivity")
    String run();

    @SignalMethod
    void done();
  }

  public static final class CancelsActivityImpl implements CancelsActivity {
    private boolean isDone;

    public String run() {
      Acts acts =
          Workflow.newActivityStub(
              Acts.class,
              ActivityOptions.newBuilder()
                  .setStartToCloseTimeout(Duration.ofMinutes(1))
                  .setHeartbeatTimeout(Duration.ofSeconds(5))
                  .setCancellationType(ActivityCancellationType.WAIT_CANCELLATION_COMPLETED)
                  .build());
      List<Promise<Void>> beat = new ArrayList<>();
      CancellationScope scope = Workflow.newCancellationScope(() -> beat.add(Async.procedure(acts::beat)));
      scope.run();
      Workflow.await(() -> isDone);
      scope.cancel();
      try {
        beat.get(0).get();
        return "not canceled";
      } catch (ActivityFailure e) {
        return e.getCause() instanceof CanceledFailure ? "canceled" : "failed";
      }
    }

    public void done() {
      isDone = true;
    }
  }

  @WorkflowInterface
  public interface Forever {
    @WorkflowMethod(name = "forever")
    void run();
  }

  public static final class ForeverImpl implements Forever {
    public void run() {
      Workflow.await(() -> false);
    }
  }

  private static ChildWorkflowOptions child() {
    return ChildWorkflowOptions.newBuilder().setWorkflowId(Workflow.getInfo().getWorkflowId() + "/child").build();
  }

  @WorkflowInterface
  public interface Parent {
    @WorkflowMethod(name = "parent")
    String run(String who);
  }

  public static final class ParentImpl implements Parent {
    public String run(String who) {
      return Workflow.newChildWorkflowStub(Hello.class, child()).run(who);
    }
  }

  @WorkflowInterface
  public interface ParentOfFailing {
    @WorkflowMethod(name = "parentOfFailing")
    String run();
  }

  public static final class ParentOfFailingImpl implements ParentOfFailing {
    public String run() {
      try {
        Workflow.newChildWorkflowStub(FailureChain.class, child()).run();
        return "fine";
      } catch (ChildWorkflowFailure e) {
        return ((ApplicationFailure) e.getCause().getCause()).getOriginalMessage();
      }
    }
  }

  @WorkflowInterface
  public interface Again {
    @WorkflowMethod(name = "again")
    String run(int n);
  }

  public static final class AgainImpl implements Again {
    public String run(int n) {
      return n > 0 ? Workflow.newContinueAsNewStub(Again.class).run(n - 1) : "last";
    }
  }

  @WorkflowInterface
  public interface Patched {
    @WorkflowMethod(name = "patched")
    List<String> run();
  }

  public static final class PatchedImpl implements Patched {
    public List<String> run() {
      String way = Workflow.getVersion("p1", Workflow.DEFAULT_VERSION, 1) == 1 ? "new" : "old";
      Workflow.upsertMemo(Map.of("note", way));
      Workflow.upsertTypedSearchAttributes(KEYWORD.valueSet("blue"));
      Workflow.sleep(Duration.ofMillis(1));
      return List.of(way, Workflow.getTypedSearchAttributes().get(KEYWORD));
    }
  }

  @WorkflowInterface
  public interface Recovers {
    @WorkflowMethod(name = "recovers")
    String run();
  }

  /** Its first task fails by an exception that is not for the workflow. */
  public static final class RecoversImpl implements Recovers {
    public String run() {
      if (local().countAttempts(Workflow.getInfo().getWorkflowId()) < 2) throw new IllegalStateException("a bug of the workflow");
      return "recovered";
    }
  }

  @WorkflowInterface
  public interface SignalsAnother {
    @WorkflowMethod(name = "signalsAnother")
    String run(String other);
  }

  public static final class SignalsAnotherImpl implements SignalsAnother {
    public String run(String other) {
      Workflow.newUntypedExternalWorkflowStub(other).signal("put", Workflow.getInfo().getWorkflowId());
      return "sent";
    }
  }

  @WorkflowInterface
  public interface CancelsAnother {
    @WorkflowMethod(name = "cancelsAnother")
    String run(String other);
  }

  public static final class CancelsAnotherImpl implements CancelsAnother {
    public String run(String other) {
      Workflow.newUntypedExternalWorkflowStub(other).cancel();
      return "asked";
    }
  }

  @WorkflowInterface
  public interface Asynchronous {
    @WorkflowMethod(name = "asynchronous")
    String run();
  }

  public static final class AsynchronousImpl implements Asynchronous {
    public String run() {
      return remote().complete(Workflow.getInfo().getWorkflowId());
    }
  }

  static final Class<?>[] ALL = {
    HelloImpl.class, RetriesImpl.class, FailureChainImpl.class, LocalActivityImpl.class, LongLocalActivityImpl.class, TimerImpl.class,
    TimerCancelImpl.class, SignalsImpl.class, UpdatesImpl.class, CancelableImpl.class, CancelsActivityImpl.class, ForeverImpl.class,
    ParentImpl.class, ParentOfFailingImpl.class, AgainImpl.class, PatchedImpl.class, RecoversImpl.class, SignalsAnotherImpl.class,
    CancelsAnotherImpl.class, AsynchronousImpl.class,
  };

  private Flows() {}
}
