package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

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
}

// copying is a root and its copy.
type copying struct {
	Roots  []*corev1.ConfigMap
	Copies []*corev1.ConfigMap
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
		kates.Query{Name: "Roots", Namespace: r.Namespace, LabelSelector: "root", Key: kates.ByObjectName},
		kates.Query{Name: "Copies", Namespace: r.Namespace, LabelSelector: "copy", Key: func(o kates.Object) []string {
			return []string{strings.TrimPrefix(o.GetName(), copyPrefix)}
		}},
		kates.Workers(8), kates.WithBackoff(5*time.Millisecond, 50*time.Millisecond), place,
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
	return client.Patch(ctx, copied, kates.MergePatchType, mark, nil)
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
	refused atomic.Int64
}

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
	p := &replicaProcess{role: role, command: exec.Command(os.Args[0])}
	p.command.Env = append(os.Environ(), replicaEnvironment+"="+string(said))
	p.command.Stderr = os.Stderr
	out, err := p.command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.command.Start())
	read := make(chan struct{})
	go func() { // ends with the process
		defer close(read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.refused.Add(1)
		}
	}()
	t.Cleanup(func() {
		p.signal(t, syscall.SIGCONT)
		p.signal(t, syscall.SIGTERM)
		<-read
		require.NoError(t, p.command.Wait(), role.Identity)
	})
	return p
}

func (p *replicaProcess) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	require.NoError(t, p.command.Process.Signal(s))
}
