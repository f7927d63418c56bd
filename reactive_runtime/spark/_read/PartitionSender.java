package reactive_runtime;

import java.io.EOFException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedByInterruptException;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.zip.Adler32;
import java.util.zip.CRC32;

import org.apache.spark.api.java.function.Function2;

/**
 * In the task of a partition: sends its Arrow batches to the driver's process, each as it is made.
 *
 * The result of the task begins with what became of the partition, and the number of batches that follow. Those of a
 * small partition come with the result where `most` is given, and all where the driver can't be reached.
 *
 * Janino, the compiler that Spark has, compiles it in the driver: so no generics, no lambdas, no bridge methods.
 */
public class PartitionSender implements Function2 {
    private static final int SENT = 0;
    private static final int RETURNED = 1;
    private static final int TOO_LARGE = 2;
    private static final int UNREACHABLE = 3;

    private static final int CONNECT_MILLIS = 5000;
    private static final int SLICE = 1 << 18; // written at once: Java copies it into memory that the thread keeps

    private final String host;
    private final int port;
    private final String secret;
    private final long most;

    /** With `most`, more bytes than that are not returned. Without a port, nothing is sent and all is returned. */
    public PartitionSender(String host, int port, String secret, long most) {
        this.host = host;
        this.port = port;
        this.secret = secret;
        this.most = most;
    }

    public Object call(Object partition, Object batches) throws Exception {
        Iterator all = (Iterator) batches;
        if (this.most > 0) {
            return small(all, this.most);
        }
        if (this.port == 0 || !all.hasNext()) {
            return result(RETURNED, listed(all));
        }
        SocketChannel driver = SocketChannel.open();
        try {
            try {
                driver.socket().connect(new InetSocketAddress(this.host, this.port), CONNECT_MILLIS);
            } catch (ClosedByInterruptException cancelled) {
                throw cancelled;
            } catch (IOException unreachable) {
                return result(UNREACHABLE, listed(all));
            }
            this.send(driver, ((Integer) partition).intValue(), all);
        } finally {
            driver.close();
        }
        return result(SENT, new ArrayList());
    }

    /** The batches, where they are few bytes; where not, the partition is left as soon as that is known. */
    private static Iterator small(Iterator batches, long most) {
        List found = new ArrayList();
        long size = 0;
        while (batches.hasNext()) {
            byte[] batch = (byte[]) batches.next();
            size += batch.length;
            if (size > most) {
                return result(TOO_LARGE, new ArrayList());
            }
            found.add(batch);
        }
        return result(RETURNED, found);
    }

    private void send(SocketChannel driver, int partition, Iterator batches) throws Exception {
        driver.socket().setTcpNoDelay(true);
        byte[] key = this.secret.getBytes("US-ASCII");
        write(driver, ByteBuffer.allocate(key.length + 4).put(key).putInt(partition).array());
        while (batches.hasNext()) {
            driver.configureBlocking(false);
            if (driver.read(ByteBuffer.allocate(1)) > 0) { // it wants no more
                return;
            }
            driver.configureBlocking(true);
            byte[] batch = (byte[]) batches.next();
            write(driver, ByteBuffer.allocate(12).putInt(batch.length).putLong(sum(batch)).array());
            write(driver, batch);
        }
        write(driver, ByteBuffer.allocate(12).putInt(-1).putLong(0L).array());
        if (driver.read(ByteBuffer.allocate(1)) < 1) { // it answers when it has all of them
            throw new EOFException("the driver does not take this partition any more");
        }
    }

    /** By which the driver knows a batch that a second attempt sends again. */
    private static long sum(byte[] batch) {
        CRC32 one = new CRC32();
        Adler32 other = new Adler32();
        one.update(batch, 0, batch.length);
        other.update(batch, 0, batch.length);
        return (one.getValue() << 32) | other.getValue();
    }

    private static void write(SocketChannel to, byte[] bytes) throws IOException {
        for (int at = 0; at < bytes.length; at += SLICE) {
            ByteBuffer slice = ByteBuffer.wrap(bytes, at, Math.min(SLICE, bytes.length - at));
            while (slice.hasRemaining()) {
                to.write(slice);
            }
        }
    }

    private static List listed(Iterator batches) {
        List found = new ArrayList();
        while (batches.hasNext()) {
            found.add(batches.next());
        }
        return found;
    }

    private static Iterator result(int what, List batches) {
        batches.add(0, ByteBuffer.allocate(8).putInt(what).putInt(batches.size()).array());
        return batches.iterator();
    }
}
