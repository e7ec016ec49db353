import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.ha.DefaultHAService;

/**
 * A broker without slaves. The service that it stands for would listen for them on every interface,
 * and no setting binds that one to loopback.
 */
public class NoReplication extends DefaultHAService {
    @Override
    public void init(DefaultMessageStore store) {
        this.defaultMessageStore = store;
    }

    @Override
    public void start() {
    }
}
