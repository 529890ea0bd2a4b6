package apiserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/kates-go/kates/kates/katestest/apiserver/internal/binaries"
)

const (
	// startTimeout suits a loaded machine. An idle one takes 3 seconds.
	startTimeout = 90 * time.Second
	// stopTimeout includes the time that the API server waits for open requests.
	stopTimeout = 60 * time.Second
	// startAttempts is more than one because the ports are chosen before the processes bind them,
	// and another process may bind them first.
	startAttempts = 3
)

// Cluster is a running control plane: one etcd, one API server, and those of [Cluster.AddServer].
// [Start] makes it and [Cluster.Stop] ends it. Several goroutines may call its methods at once,
// except those that start and stop something.
type Cluster struct {
	// Config is for a user with all rights, without a client-side rate limit. Copy it before
	// changing it.
	Config *rest.Config
	// Version is the API server's version, such as v1.36.3. It is what the server says
	// of itself, too.
	Version string

	plane *envtest.ControlPlane
	admin *envtest.AuthenticatedUser
	dir   string // data of all processes; the cluster removes it
	// program is the API server's binary.
	program string
	wrap    transport.WrapperFunc // of all configurations

	users   sync.Mutex // envtest's certificate authority is not for concurrent use
	servers []*Server  // the first is the plane's
	// etcdDown says that etcd was ended and not started again.
	etcdDown bool
	stop     func() error
}

// Start runs a kube-apiserver and an etcd, which takes seconds. If their binaries are not in the
// cache it builds them first, which takes minutes; it tells on standard error how far that is. It
// returns when the API server is healthy, has its default namespace, and serves the custom kinds
// of [WithCRDs].
//
// ctx bounds the start only, not the life of the cluster: the caller must call Stop or Kill. In a
// test, [StartAPIServer] does. After an error nothing is left running. If a process does not come
// up, the error ends with the last lines that it wrote.
func Start(ctx context.Context, options ...Option) (*Cluster, error) {
	var s settings
	for _, option := range options {
		option(&s)
	}
	crds, err := readDefinitions(s.definitions)
	if err != nil {
		return nil, fmt.Errorf("start a test cluster: %w", err)
	}
	version, err := s.version()
	if err != nil {
		return nil, fmt.Errorf("start a test cluster: %w", err)
	}
	set, err := binaries.Ensure(ctx, version, os.Stderr)
	if err != nil {
		return nil, fmt.Errorf("start a test cluster: %w", err)
	}
	for attempt := 1; ; attempt++ {
		c, err := start(ctx, set, s)
		if err == nil {
			if err = install(ctx, c.Config, crds); err == nil {
				return c, nil
			}
			err = errors.Join(fmt.Errorf("install custom resources: %w", err), c.Kill())
			attempt = startAttempts // another server would refuse them, too
		}
		if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
			err = errors.Join(cause, err)
		}
		if attempt == startAttempts || ctx.Err() != nil {
			return nil, fmt.Errorf("start a test cluster: %w", err)
		}
	}
}

// start makes one attempt, with fresh ports and an empty etcd.
func start(ctx context.Context, set binaries.Set, s settings) (_ *Cluster, err error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	dir, err := os.MkdirTemp("", "kates-cluster-*")
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir, program: set.APIServer, wrap: s.wrap, Version: set.APIServerVersion}
	c.stop = sync.OnceValue(c.shutDown)
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	if c.plane, err = newPlane(dir, set, s.flags); err != nil {
		return nil, err
	}
	if err := run(c.plane); err != nil {
		return nil, err
	}
	if c.admin, err = c.addUser("kates-admin", "system:masters"); err != nil {
		return nil, err
	}
	c.Config = c.admin.Config()
	c.servers = []*Server{{plane: c.plane, process: c.plane.APIServer, up: true}}
	return c, c.waitReady(ctx)
}

// Stop ends both processes, waits for them, and removes their data. A second call does nothing
// and returns the same error. Open watches of clients end with an error; clients that retry get
// no answer.
func (c *Cluster) Stop() error { return c.stop() }

// Kill is Stop with SIGKILL. It is faster, and works if a server is paused. After Stop it does
// nothing.
func (c *Cluster) Kill() error {
	var err error
	for _, s := range c.servers {
		err = errors.Join(err, s.Kill())
	}
	return errors.Join(err, c.KillEtcd(), c.Stop())
}

func (c *Cluster) shutDown() error {
	var err error
	for _, s := range c.servers {
		err = errors.Join(err, s.Stop())
	}
	if c.plane != nil {
		err = errors.Join(err, c.plane.Stop())
		c.etcdDown = true
	}
	if err = errors.Join(err, os.RemoveAll(c.dir)); err != nil {
		return fmt.Errorf("stop the test cluster: %w", err)
	}
	return nil
}

// AdminKubeconfig returns the content of a kubeconfig file for the user of Config, with the
// certificates in it.
func (c *Cluster) AdminKubeconfig() ([]byte, error) {
	content, err := c.admin.KubeConfig()
	if err != nil {
		return nil, fmt.Errorf("write a kubeconfig: %w", err)
	}
	return content, nil
}

// AddUser makes a user with a client certificate, and returns a configuration for this user,
// without a client-side rate limit. The user is in groups and in system:authenticated, and has
// the rights that RBAC gives to these. The configuration belongs to the caller.
func (c *Cluster) AddUser(name string, groups ...string) (*rest.Config, error) {
	user, err := c.addUser(name, groups...)
	if err != nil {
		return nil, err
	}
	return user.Config(), nil
}

func (c *Cluster) addUser(name string, groups ...string) (*envtest.AuthenticatedUser, error) {
	c.users.Lock()
	defer c.users.Unlock()
	user, err := c.plane.AddUser(envtest.User{Name: name, Groups: groups}, &rest.Config{
		QPS:           -1,
		UserAgent:     "kates-test/" + name,
		WrapTransport: c.wrap,
	})
	if err != nil {
		return nil, fmt.Errorf("add user %q: %w", name, err)
	}
	return user, nil
}

// waitReady waits for the objects that the API server makes after it is healthy, and that tests
// rely on.
func (c *Cluster) waitReady(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return fmt.Errorf("wait for the default namespace: %w", err)
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, startTimeout, true, func(ctx context.Context) (bool, error) {
		_, last = client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the default namespace: %w", errors.Join(err, last))
	}
	return nil
}

// subdir makes and returns a folder in dir.
func subdir(dir, name string) (string, error) {
	path := filepath.Join(dir, name)
	return path, os.Mkdir(path, 0o700)
}
