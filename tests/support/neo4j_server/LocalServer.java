import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.neo4j.configuration.connectors.ConnectorPortRegister;
import org.neo4j.configuration.connectors.ConnectorType;
import org.neo4j.dbms.api.DatabaseManagementService;
import org.neo4j.kernel.internal.GraphDatabaseAPI;
import org.neo4j.server.CommunityBootstrapper;

/**
 * A whole Neo4j Community server in one process, for tests and for looking at runs.
 *
 * <p>Usage: LocalServer HOME SETTING=VALUE... ; a password of the user neo4j comes in NEO4J_PASSWORD (none: no authentication).
 * Prints "READY bolt-port http-port" and lives until its standard input ends: so it never outlives who started it.
 */
public final class LocalServer {
    private static final int CANNOT_START = 1;

    public static void main(String[] arguments) throws Exception {
        Path home = Path.of(arguments[0]);
        Files.createDirectories(home);
        Path empty = home.resolve("neo4j.conf");
        if (!Files.exists(empty)) {
            Files.createFile(empty);
        }
        CommunityBootstrapper server = new CommunityBootstrapper();
        endWithInput();
        if (server.start(home, empty, settings(arguments), false, false) != 0) {
            System.exit(CANNOT_START);
        }
        DatabaseManagementService databases = server.getDatabaseManagementService();
        setPassword(databases);
        ConnectorPortRegister ports = ((GraphDatabaseAPI) databases.database("neo4j"))
                .getDependencyResolver().resolveDependency(ConnectorPortRegister.class);
        System.out.println("READY " + port(ports, ConnectorType.BOLT) + " " + port(ports, ConnectorType.HTTP));
        Thread.currentThread().join();
    }

    private static Map<String, String> settings(String[] arguments) {
        Map<String, String> settings = new HashMap<>();
        for (int i = 1; i < arguments.length; i++) {
            int at = arguments[i].indexOf('=');
            settings.put(arguments[i].substring(0, at), arguments[i].substring(at + 1));
        }
        return settings;
    }

    private static int port(ConnectorPortRegister ports, ConnectorType type) {
        var address = ports.getLocalAddress(type);
        return address == null ? 0 : address.getPort();
    }

    private static void setPassword(DatabaseManagementService databases) {
        String password = System.getenv("NEO4J_PASSWORD");
        if (password == null || password.isEmpty()) {
            return;
        }
        try (var transaction = databases.database("system").beginTx()) {
            transaction.execute("ALTER USER neo4j SET PASSWORD $password CHANGE NOT REQUIRED", Map.of("password", password));
            transaction.commit();
        }
    }

    /** Ends with its input: at once, as committed data survive that; an orderly end would take seconds. */
    private static void endWithInput() {
        Thread watch = new Thread(() -> {
            try {
                while (System.in.read() != -1) {
                    continue;
                }
            } catch (IOException gone) {
                // as good as the end
            }
            Runtime.getRuntime().halt(0);
        }, "end-with-input");
        watch.setDaemon(true);
        watch.start();
    }
}
