package apiserver

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// StartAPIServer starts a cluster for one test and its subtests, see [Start]. It is killed when
// they have ended, and its data are removed. An error fails the test at once.
//
// A start takes seconds. Tests that need no cluster of their own use one for all: [Share].
func StartAPIServer(t testing.TB, options ...Option) *Cluster {
	t.Helper()
	ctx, cancel := inTime(t)
	defer cancel()
	c, err := Start(ctx, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Kill(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// Namespace creates a namespace with a name that nothing else has, and returns the name. It begins
// with the name of the test. So tests that share a cluster do not meet, as long as they look at
// namespaced objects of their own namespace.
//
// Nothing removes the namespace before the cluster ends: that is the work of a controller, and
// none runs.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.Config)
	if err == nil {
		var made *corev1.Namespace
		made, err = client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{GenerateName: namespacePrefix(t.Name())},
		}, metav1.CreateOptions{})
		if err == nil {
			return made.Name
		}
	}
	t.Fatalf("create a namespace: %v", err)
	return ""
}

// namespacePrefix makes the beginning of a DNS label of a test's name.
func namespacePrefix(test string) string {
	name := regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(test), "-")
	name = strings.Trim(name[:min(len(name), 50)], "-")
	if name == "" {
		name = "test"
	}
	return name + "-"
}

// errTime ends a start that takes the rest of the time of a test binary. A panic of `go test`
// would not say what to do.
var errTime = errors.New("the time of `go test -timeout` is nearly over: give it more, " +
	"or build the binaries before the tests, with " +
	"`go run github.com/kates-go/kates/kates/katestest/apiserver/cmd/apiserver`")

// inTime returns a context that ends with the test, or shortly before the test binary's time is
// over.
func inTime(t testing.TB) (context.Context, context.CancelFunc) {
	if test, is := t.(interface{ Deadline() (time.Time, bool) }); is { // benchmarks have none
		if deadline, has := test.Deadline(); has {
			left := time.Until(deadline)
			return context.WithTimeoutCause(t.Context(), left-min(left/10, 10*time.Second), errTime)
		}
	}
	return context.WithCancel(t.Context())
}
