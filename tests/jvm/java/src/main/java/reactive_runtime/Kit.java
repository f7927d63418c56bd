package reactive_runtime;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import org.testng.IMethodInterceptor;
import org.testng.IObjectFactory2;
import org.testng.ITestContext;
import org.testng.ITestResult;
import org.testng.TestListenerAdapter;
import org.testng.TestNG;

/** Runs verifications, each with a maker of its own, and tells each test's name, status and reason. Any thread. */
public class Kit {
  /** Those tests that collect garbage (3.13), or all others. */
  public static List<String[]> run(Class<?> verification, Maker maker, boolean collecting) {
    // TestNG reads a resource by it, and a thread of Python has none.
    Thread.currentThread().setContextClassLoader(Kit.class.getClassLoader());
    if (collecting) System.gc();  // what others have left is enqueued while the test waits, and not with its own
    List<String[]> results = new ArrayList<>();
    TestNG testng = new TestNG(false);
    testng.setTestClasses(new Class<?>[] {verification});
    testng.setVerbose(0);
    testng.setObjectFactory((IObjectFactory2) it -> made(it, maker));
    testng.addListener((org.testng.ITestNGListener) new TestListenerAdapter() {
      @Override public void onFinish(ITestContext context) {
        for (ITestResult it : getPassedTests()) results.add(line(it, "passed"));
        for (ITestResult it : getFailedTests()) results.add(line(it, "failed"));
        for (ITestResult it : getSkippedTests()) results.add(line(it, "skipped"));
      }
    });
    testng.addListener((org.testng.ITestNGListener) (IMethodInterceptor) (methods, context) -> methods.stream()
        .filter(it -> it.getMethod().getMethodName().contains("spec313") == collecting)
        .collect(Collectors.toList()));
    testng.run();
    return results;
  }

  private static Object made(Class<?> verification, Maker maker) {
    try {
      return verification.getConstructor(Maker.class).newInstance(maker);
    } catch (ReflectiveOperationException problem) {
      throw new IllegalStateException(problem);
    }
  }

  private static String[] line(ITestResult it, String status) {
    Throwable why = it.getThrowable();
    return new String[] {it.getMethod().getMethodName(), status, why == null ? "" : String.valueOf(why.getMessage())};
  }
}
