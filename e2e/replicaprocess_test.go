package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
)

const (
	// replicaEnvironment holds the role of a process, as JSON.
	replicaEnvironment = "KATES_E2E_REPLICA"
	handOverGroup      = "copiers"
	copyPrefix         = "copy-"
)

// replicaRole is what a process, or a goroutine in its place, does: it copies what roots want
// into objects of its own.
type replicaRole struct {
	Namespace, Identity string
	Sharded             bool
	Host                string
	TLS                 rest.TLSClientConfig
	Certificate         []byte
	Key                 []byte

	gate *writeGate // nil: none
}

// copying is a root and its copy.
type copying struct {
	Roots  []*corev1.ConfigMap
	Copies []*corev1.ConfigMap
}

// writeGate holds up one write of a replica, in a round for which the test asks for that on the
// standard input. Lines of output tell that the write waits, and how it has ended.
type writeGate struct {
	mu     sync.Mutex
	round  int // in which the next write is held up, 0: none is
	opened chan struct{}
}

// Lines of input and output. The last one has an error, too.
const (
	gateShut  = "shut %d\n"
	gateOpen  = "open %d\n"
	gateHeld  = "held %d\n"
	gateEnded = "ended %d %q\n"
)

// obey does what the lines of in say. It ends with the test that writes them.
func (g *writeGate) obey(in io.Reader) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var round int
		_, err := fmt.Sscanf(lines.Text()+"\n", gateShut, &round)
		g.open()
		if err == nil {
			g.mu.Lock()
			g.round, g.opened = round, make(chan struct{})
			g.mu.Unlock()
		}
	}
	g.open()
}

func (g *writeGate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.round = 0
	if g.opened != nil {
		close(g.opened)
		g.opened = nil
	}
}

// pass runs a write, or holds it up before.
func (g *writeGate) pass(write func() error) error {
	if g == nil {
		return write()
	}
	g.mu.Lock()
	round, opened := g.round, g.opened
	g.round = 0
	g.mu.Unlock()
	if round == 0 {
		return write()
	}
	fmt.Printf(gateHeld, round)
	<-opened
	err := write()
	fmt.Printf(gateEnded, round, fmt.Sprint(err))
	return err
}

// replicaMain is the main function of a replica. It prints a line for each refused write.
func replicaMain(said string) int {
	var role replicaRole
	if err := json.Unmarshal([]byte(said), &role); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	config := &rest.Config{Host: role.Host, TLSClientConfig: role.TLS, QPS: -1}
	config.CertData, config.KeyData = role.Certificate, role.Key
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	client, err := kates.NewClientFromRESTConfig(config, kates.WithInterval(0), kates.WithNamespace(role.Namespace))
	if err == nil {
		defer client.Close()
		role.gate = &writeGate{}
		go role.gate.obey(os.Stdin)
		err = role.run(ctx, client, func() { fmt.Println("refused") })
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// run works until ctx ends, as leader or as shard. It reports writes that were not sent.
func (r *replicaRole) run(ctx context.Context, client *kates.Client, refused func()) error {
	place := kates.RunOption(kates.LeaderElection{
		Namespace: r.Namespace, Name: handOverGroup, Identity: r.Identity,
		LeaseDuration: 2 * time.Second, RenewDeadline: 1500 * time.Millisecond, RetryPeriod: 200 * time.Millisecond,
	})
	if r.Sharded {
		place = kates.Sharding{
			Namespace: r.Namespace, Name: handOverGroup, Identity: r.Identity,
			LeaseDuration: 2 * time.Second, RenewDeadline: 1500 * time.Millisecond, RetryPeriod: 200 * time.Millisecond,
		}
	}
	options := []kates.RunOption{
		kates.Query{Name: "Roots", Namespace: r.Namespace, LabelSelector: "root", Key: kates.ByName},
		kates.Query{Name: "Copies", Namespace: r.Namespace, LabelSelector: "copy", Key: kates.KeyOf(func(o metav1.Object) []string {
			return []string{strings.TrimPrefix(o.GetName(), copyPrefix)}
		})},
		kates.WithWorkers(8), kates.WithBackoff(5*time.Millisecond, 50*time.Millisecond), place,
	}
	work := func(ctx context.Context, key string, c *copying) error {
		err := r.copy(ctx, client, key, c)
		if errors.Is(err, kates.ErrLeadershipLost) || errors.Is(err, kates.ErrKeyLost) {
			refused()
		}
		return err
	}
	for ctx.Err() == nil {
		if err := kates.RunEach(ctx, client, work, options...); err != nil && !errors.Is(err, kates.ErrLeadershipLost) {
			return err
		}
	}
	return nil
}

// copy makes the copy of a root what the root wants, and then marks it: two writes.
func (r *replicaRole) copy(ctx context.Context, client *kates.Client, key string, c *copying) error {
	if len(c.Roots) == 0 {
		return nil
	}
	if len(c.Copies) > 0 && c.Copies[0].Data["have"] == c.Roots[0].Data["want"] && c.Copies[0].Data["by"] == r.Identity && c.Copies[0].Annotations["done"] == c.Roots[0].Data["want"] {
		return nil
	}
	copied, err := r.write(ctx, client, key, c)
	if err != nil {
		return err
	}
	mark, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{"done": copied.Data["have"]}}})
	if err != nil {
		return err
	}
	return r.gate.pass(func() error { return client.Patch(ctx, copied, kates.MergePatchType, mark, nil) })
}

// write writes the copy, using the ways of writing by turns. Each replica writes its own name.
func (r *replicaRole) write(ctx context.Context, client *kates.Client, key string, c *copying) (*corev1.ConfigMap, error) {
	want := c.Roots[0].Data["want"]
	copied := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: copyPrefix + key, Labels: map[string]string{"copy": ""}},
		Data:       map[string]string{"have": want, "by": r.Identity},
	}
	if len(c.Copies) == 0 {
		return copied, client.Create(ctx, copied, nil)
	}
	now := c.Copies[0]
	n, err := strconv.Atoi(want)
	if err != nil {
		return nil, err
	}
	switch n % 5 {
	case 0:
		if err := client.Delete(ctx, now, nil); err != nil {
			return nil, err
		}
		err = client.Create(ctx, copied, nil)
	case 1:
		err = client.Update(ctx, copied, nil) // without a version
	case 2:
		var patch []byte
		if patch, err = json.Marshal(map[string]any{"data": copied.Data}); err == nil {
			err = client.Patch(ctx, now, kates.MergePatchType, patch, nil)
		}
	case 3:
		err = client.Apply(ctx, copied, nil, kates.ForceOwnership())
	default:
		_, err = kates.Modify(ctx, client, now, func(m *corev1.ConfigMap) error {
			m.Data = copied.Data
			return nil
		})
	}
	return copied, err
}

// replicaProcess is a process that a test has started.
type replicaProcess struct {
	role    replicaRole
	command *exec.Cmd
	in      io.WriteCloser
	refused atomic.Int64
	ended   chan heldWrite
}

// heldWrite is a write that was held up.
type heldWrite struct {
	by    *replicaProcess
	round int
	err   string // once it has ended
}

// heldMost is more than what is held in all rounds of a test.
const heldMost = 100

// startReplica starts one of several processes. Each is a user of its own at the API server,
// named by its identity.
func (a *audited) startReplica(t *testing.T, role replicaRole) *replicaProcess {
	t.Helper()
	config, err := a.AddUser(role.Identity, "system:masters")
	require.NoError(t, err)
	role.Host, role.Certificate, role.Key = config.Host, config.CertData, config.KeyData
	role.TLS = rest.TLSClientConfig{CAData: config.CAData, ServerName: config.ServerName}
	said, err := json.Marshal(role)
	require.NoError(t, err)
	p := &replicaProcess{role: role, command: exec.Command(os.Args[0]), ended: make(chan heldWrite, heldMost)}
	p.command.Env = append(os.Environ(), replicaEnvironment+"="+string(said))
	p.command.Stderr = os.Stderr
	out, err := p.command.StdoutPipe()
	require.NoError(t, err)
	p.in, err = p.command.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, p.command.Start())
	read := make(chan struct{})
	go func() { // ends with the process
		defer close(read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.hear(lines.Text(), a.held)
		}
	}()
	t.Cleanup(func() {
		p.signal(t, syscall.SIGCONT)
		p.signal(t, syscall.SIGTERM)
		assert.NoError(t, p.in.Close())
		<-read
		require.NoError(t, p.command.Wait(), role.Identity)
	})
	return p
}

// holdAWrite holds up the next write of any of the replicas, and returns that replica.
func (a *audited) holdAWrite(t *testing.T, round int, replicas []*replicaProcess) *replicaProcess {
	t.Helper()
	for _, p := range replicas {
		p.tell(t, gateShut, round)
	}
	held := receive(t, a.held)
	for held.round != round { // a second one in a former round
		held = receive(t, a.held)
	}
	for _, p := range replicas {
		if p != held.by {
			p.tell(t, gateOpen, round)
		}
	}
	return held.by
}

// letGo lets the write go that was held up, and returns its error as a text.
func (p *replicaProcess) letGo(t *testing.T, round int) string {
	t.Helper()
	p.tell(t, gateOpen, round)
	one := receive(t, p.ended)
	for one.round != round {
		one = receive(t, p.ended)
	}
	return one.err
}

func (p *replicaProcess) tell(t *testing.T, line string, round int) {
	t.Helper()
	_, err := fmt.Fprintf(p.in, line, round)
	require.NoError(t, err)
}

// hear notes what a process says.
func (p *replicaProcess) hear(line string, held chan<- heldWrite) {
	h := heldWrite{by: p}
	if _, err := fmt.Sscanf(line+"\n", gateHeld, &h.round); err == nil {
		held <- h
		return
	}
	if _, err := fmt.Sscanf(line+"\n", gateEnded, &h.round, &h.err); err == nil {
		p.ended <- h
		return
	}
	p.refused.Add(1)
}

func (p *replicaProcess) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	require.NoError(t, p.command.Process.Signal(s))
}
