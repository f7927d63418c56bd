package reactive_runtime;

import java.util.ArrayList;
import java.util.List;
import org.testng.ITestContext;
import org.testng.ITestResult;
import org.testng.TestListenerAdapter;
import org.testng.TestNG;

/** Runs one verification, and tells each test's name, status and reason. */
public class Kit {
  public static List<String[]> run(Class<?> verification) {
    List<String[]> results = new ArrayList<>();
    TestNG testng = new TestNG(false);
    testng.setTestClasses(new Class<?>[] {verification});
    testng.setVerbose(0);
    testng.addListener((org.testng.ITestNGListener) new TestListenerAdapter() {
      @Override public void onFinish(ITestContext context) {
        for (ITestResult it : getPassedTests()) results.add(line(it, "passed"));
        for (ITestResult it : getFailedTests()) results.add(line(it, "failed"));
        for (ITestResult it : getSkippedTests()) results.add(line(it, "skipped"));
      }
    });
    testng.run();
    return results;
  }

  private static String[] line(ITestResult it, String status) {
    Throwable why = it.getThrowable();
    return new String[] {it.getMethod().getMethodName(), status, why == null ? "" : String.valueOf(why.getMessage())};
  }
}
