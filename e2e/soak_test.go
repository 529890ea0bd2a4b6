//go:build soak

package e2e

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/kates-go/kates/e2e/cluster"
	"github.com/kates-go/kates/kates"
)

var soakTime = flag.Duration("soak.time", time.Minute, "how long the run against three servers takes, at least")

// soakDir has the audit logs.
var soakDir string

func init() { clusterFlags = func() []string { return serverFlags(0) } }

// soakPolicy logs what own clients write, when it has been answered.
const soakPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
  userGroups: [soakers]
  verbs: [create, update, patch, delete, deletecollection]
  resources:
  - group: ""
    resources: [pods, pods/*, configmaps, configmaps/*]
  - group: getambassador.io
- level: None
`

// serverFlags are those of the nth server. They make its audit log, and have etcd store JSON.
func serverFlags(n int) []string {
	var err error
	if soakDir == "" {
		if soakDir, err = os.MkdirTemp("", "kates-soak-*"); err != nil {
			panic(err)
		}
	}
	dir := filepath.Join(soakDir, fmt.Sprint(n))
	policy := filepath.Join(dir, "policy.yaml")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(policy, []byte(soakPolicy), 0o600)); err != nil {
		panic(err)
	}
	return []string{"storage-media-type=application/json", "audit-policy-file=" + policy, "audit-log-path=" + filepath.Join(dir, "audit.log")}
}

// soakLog is a client's log: a file, and how often some things were said.
type soakLog struct {
	mu                  sync.Mutex
	file                *os.File
	unsettled, restored int
}

func (l *soakLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unsettled += bytes.Count(p, []byte("own write not settled"))
	l.restored += bytes.Count(p, []byte("restored from a backup"))
	return l.file.Write(p)
}

func (l *soakLog) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unsettled
}

// soaker is one client of the run: its writes, and those who watch through it.
type soaker struct {
	*world
	log    *soakLog
	trials []*trial
}

// soaking is a run against three servers on one etcd.
type soaking struct {
	*testing.T
	*disaster
	clients []*soaker
	logs    []*auditLog
	sums    map[string]int
	random  *rand.Rand
}

// comparable is what is the same in etcd and in an answer: not the version in which it is served,
// nor what a default adds.
func comparable(u *kates.Unstructured) *kates.Unstructured {
	u = u.DeepCopy()
	unstructured.RemoveNestedField(u.Object, "apiVersion")
	unstructured.RemoveNestedField(u.Object, "metadata", "resourceVersion")
	unstructured.RemoveNestedField(u.Object, "spec", defaulted)
	return u
}

func newSoaking(t *testing.T) *soaking {
	d := &disaster{T: t, Cluster: testCluster, counts: map[string]int{}, servers: []*cluster.Server{testCluster.Server()}}
	s := &soaking{T: t, disaster: d, sums: map[string]int{}, random: rand.New(rand.NewPCG(*seed, 1000))}
	for n := range 3 {
		if n > 0 {
			server, err := testCluster.AddServer(serverFlags(n)...)
			require.NoError(t, err)
			d.servers = append(d.servers, server)
		}
		s.logs = append(s.logs, &auditLog{dir: filepath.Join(soakDir, fmt.Sprint(n)), read: map[string]int64{}})
	}
	var err error
	quiet := d.config("", *seed)
	d.admin, err = kubernetes.NewForConfig(quiet)
	require.NoError(t, err)
	d.others, err = dynamic.NewForConfig(quiet)
	require.NoError(t, err)
	d.define(func(map[string]any) {})
	d.serves()
	d.roles()
	for n := range 2 {
		s.clients = append(s.clients, s.newSoaker(n))
	}
	d.c = newChronicle(s.clients[0].world)
	return s
}

// newSoaker makes a client. The first has one connection for all requests; each request of the
// second may meet another server.
func (s *soaking) newSoaker(n int) *soaker {
	name := fmt.Sprint("soaker-", n)
	config := s.config(name, *seed+uint64(n)+1)
	own := &ledger{client: name, calls: map[int]*ownCall{}}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return numbered{own, next} })
	if n == 1 {
		plain(config)
	}
	file, err := os.Create(filepath.Join(soakDir, name+".log"))
	require.NoError(s, err)
	out := &soakLog{file: file}
	client, err := tapped(kates.NewClientFromRESTConfig(config, kates.WithInterval(0), kates.Tuning{IdleTimeout: 5 * time.Second},
		kates.WithLogger(slog.New(slog.NewTextHandler(out, nil)))))
	require.NoError(s, err)
	s.Cleanup(client.Close)
	var w *world
	if n == 0 {
		w = newWorld(s.T, client, s.config("", *seed+10))
	} else {
		w = &world{client: client, others: s.others, done: map[string]int{}, namespaces: s.clients[0].namespaces, label: s.clients[0].label}
	}
	w.strips, w.faulty, w.unsettled, w.excuses, w.plain, w.ledger = true, byFault, out.count, mayFail, comparable, own
	return &soaker{world: w, log: out}
}

// soakWays are those of each client's witnesses.
var soakWays = [][]string{
	{"everything", "everything, typed", "by label and field, typed", "all namespaces", "a union", "looked up", "transformed, by label", "metadata"},
	{"everything", "by label", "by field", "all namespaces, by field, typed", "a set of namespaces", "a union in both, typed", "a predicate", "looked up, a union"},
}

// each calls do for all witnesses, side by side.
func (s *soaking) each(do func(*trial)) {
	var all sync.WaitGroup
	for _, c := range s.clients {
		for _, j := range c.trials {
			all.Go(func() { do(j) })
		}
	}
	all.Wait()
}

// reading lets all witnesses read until the returned function is called.
func (s *soaking) reading() (end func()) {
	ctx, cancel := context.WithCancel(s.Context())
	var readers sync.WaitGroup
	for _, c := range s.clients {
		for i, j := range c.trials {
			r := rand.New(rand.NewPCG(*seed, s.random.Uint64()))
			readers.Go(func() { j.read(ctx, time.Duration(i%3)*150*time.Millisecond, r) })
		}
	}
	return func() {
		cancel()
		readers.Wait()
	}
}

// writing lets all writers write until the returned function is called.
func (s *soaking) writing() (end func()) {
	ctx, cancel := context.WithCancel(s.Context())
	var writers sync.WaitGroup
	random := func() *rand.Rand { return rand.New(rand.NewPCG(*seed, s.random.Uint64())) }
	for _, c := range s.clients {
		for range 3 {
			r := random()
			writers.Go(func() { c.own(ctx, s.T, r) })
		}
	}
	for range 3 {
		r := random()
		writers.Go(func() { s.clients[0].foreign(ctx, r) })
	}
	r := random()
	writers.Go(func() { s.clients[0].kubelet(ctx, r) })
	return func() {
		cancel()
		writers.Wait()
	}
}

// visit opens one watch after the other through a client, and returns the closed ones. The faults
// may make the opening fail.
func (s *soaking) visit(ctx context.Context, c *soaker, r *rand.Rand) (all []*trial) {
	names := slices.Concat(soakWays...)
	for ctx.Err() == nil {
		known, _ := c.known()
		stay, cancel := context.WithTimeout(ctx, time.Duration(r.IntN(4000))*time.Millisecond)
		name := names[r.IntN(len(names))]
		opening := s.Context()
		if ways[name].lookUp {
			opening = stay // its first list may be long in coming
		}
		j, err := c.witness(opening, s.T, name, c.namespaces[r.IntN(2)])
		if err == nil {
			j.name = "visitor, " + j.name
			j.read(stay, 20*time.Millisecond, r)
			j.close()
			all = append(all, newTrial(j, known))
		}
		cancel()
		pause(ctx, 100*time.Millisecond)
	}
	return all
}

// counted adds to the sums that the end of the run tells.
func (s *soaking) counted(what string, n int) { s.sums[what] += n }

// summary says how much there was of what.
func (s *soaking) summary() string {
	all := maps.Clone(s.sums)
	for _, c := range s.clients {
		known, _ := c.known()
		all["own writes"] += known
		all["own writes of unknown outcome"] += c.lost
		c.log.mu.Lock()
		all["times a client noticed a restore"] += c.log.restored
		c.log.mu.Unlock()
	}
	maps.Copy(all, s.disaster.counts)
	text := fmt.Sprintf("seed %d", *seed)
	for _, what := range slices.Sorted(maps.Keys(all)) {
		text += fmt.Sprintf(", %s: %d", what, all[what])
	}
	return text
}
