package source

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates"
)

// loopback is where the clusters of tests are that a fleet connects to.
var loopback = []string{"127.0.0.0/8"}

// canary is in every credential of these tests, and must be in no error.
const canary = "c4n4ry"

// kubeconfig returns the text of a kubeconfig with one context.
func kubeconfigText(t testing.TB, server string, edit ...func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	cluster, user := clientcmdapi.NewCluster(), clientcmdapi.NewAuthInfo()
	cluster.Server, user.Token = server, canary+"-token"
	for _, e := range edit {
		e(cluster, user)
	}
	config.Clusters["a-cluster"], config.AuthInfos["a-user"] = cluster, user
	config.Contexts["a-context"] = &clientcmdapi.Context{Cluster: "a-cluster", AuthInfo: "a-user"}
	config.CurrentContext = "a-context"
	text, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func token(text string) func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo) {
	return func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.Token = text }
}

// running is a source that runs until the test ends.
type running struct {
	source fleet.Source
	mu     sync.Mutex
	said   int
	last   []fleet.Member
	ended  error
	end    func()
}

// run runs a source until the test ends.
func run(t *testing.T, s fleet.Source) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{source: s}
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := s.Run(ctx, r.set)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ended = err
	}()
	r.end = func() { cancel(); <-done }
	t.Cleanup(r.end)
	return r
}

func (r *running) set(all []fleet.Member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said++
	r.last = slices.Clone(all)
}

// sets returns how often the source has said something.
func (r *running) sets() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.said
}

// member returns a member by name.
func (r *running) member(t *testing.T, name string) fleet.Member {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.last {
		if m.Name == name {
			return m
		}
	}
	t.Fatalf("there is no %q", name)
	return fleet.Member{}
}

// is fails the test unless the source's members are these: "name=host", "name!" for one with an
// error, "name@" for one with a client.
func (r *running) is(t *testing.T, want ...string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if got := list(r.last); !slices.Equal(got, want) || r.said == 0 {
		t.Fatalf("after %d calls the members are %v, and should be %v; %v; %v", r.said, got, want, r.last, r.ended)
	}
	for _, m := range r.last {
		if m.Err != nil && strings.Contains(m.Err.Error(), canary) {
			t.Errorf("the error quotes a credential: %v", m.Err)
		}
	}
}

func list(all []fleet.Member) (texts []string) {
	for _, m := range all {
		switch {
		case m.Err != nil:
			texts = append(texts, m.Name+"!")
		case m.Client != nil:
			texts = append(texts, m.Name+"@")
		default:
			texts = append(texts, m.Name+"="+m.Config.Host)
		}
	}
	slices.Sort(texts)
	return texts
}

// trouble returns what a source says is wrong while it runs.
func (r *running) trouble() string {
	err := r.source.(interface{ Err() error }).Err()
	if err == nil {
		return ""
	}
	return err.Error()
}

func secret(namespace, name string, labels map[string]string, data map[string]string) *kates.Secret {
	s := &kates.Secret{}
	s.Namespace, s.Name, s.Labels, s.Data = namespace, name, labels, map[string][]byte{}
	for key, value := range data {
		s.Data[key] = []byte(value)
	}
	return s
}

// newFleet makes a fleet of one source, that ends with the test.
func newFleet(t *testing.T, s fleet.Source) *fleet.Fleet {
	t.Helper()
	f, err := fleet.New(fleet.Options{Sources: []fleet.Source{s}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

// eventually waits until a fleet's clusters are as wanted. In a bubble of synctest, its minute
// takes no time.
func eventually(t *testing.T, f *fleet.Fleet, what string, is func() bool) {
	t.Helper()
	changed, stop := f.Listen()
	defer stop()
	late := time.After(time.Minute)
	for !is() {
		select {
		case <-changed:
		case <-late:
			t.Fatalf("waiting until %s: %s", what, f.Status())
		}
	}
}

// runnable runs a source that ends by itself.
type runnable struct {
	run func(context.Context, func([]fleet.Member)) error
}

func (r runnable) Run(t *testing.T) error {
	return r.run(t.Context(), func([]fleet.Member) { t.Error("it has said something") })
}
