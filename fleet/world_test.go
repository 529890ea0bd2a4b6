package fleet

import (
	"context"
	"net"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// newFleet makes a fleet that ends with the test.
func newFleet(t *testing.T, o Options) *Fleet {
	t.Helper()
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

// newCluster makes a fake cluster that has an identity.
func newCluster(t testing.TB, uid types.UID, objects ...kates.Object) *katestest.Fake {
	t.Helper()
	return katestest.New(t, katestest.WithObjects(append(objects, systemOf(uid))...))
}

// systemOf is the namespace that tells a cluster from others.
func systemOf(uid types.UID) *kates.Namespace {
	system := &kates.Namespace{}
	system.Name, system.UID = "kube-system", uid
	return system
}

// eventually waits until a fleet's clusters are as wanted. In a bubble of synctest, its ten minutes
// take no time.
func eventually(t *testing.T, f *Fleet, what string, is func() bool) {
	t.Helper()
	changed, stop := f.Listen()
	defer stop()
	late := time.After(10 * time.Minute)
	for !is() {
		select {
		case <-changed:
		case <-late:
			t.Fatalf("waiting until %s: %s", what, f.Status())
		}
	}
}

// signalled waits for a signal, as long as eventually does.
func signalled(t *testing.T, signals <-chan struct{}) {
	t.Helper()
	select {
	case <-signals:
	case <-time.After(10 * time.Minute):
		t.Fatal("no signal comes")
	}
}

// scripted is a source that says what a test sends.
type scripted chan []Member

func (s scripted) String() string { return "a script" }

func (s scripted) Run(ctx context.Context, set func([]Member)) error {
	for {
		select {
		case all := <-s:
			set(all)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// hung is how to reach a server that never answers.
func hung() *rest.Config {
	return &rest.Config{Host: "http://hung", Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second) // of Go's own dialer
		defer cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	}}
}
