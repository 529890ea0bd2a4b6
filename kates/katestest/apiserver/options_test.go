package apiserver

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

func TestAnUnknownVersionIsAnErrorOfStartThatSaysWhichThereAre(t *testing.T) {
	_, err := Start(t.Context(), WithKubernetes("1.2"))
	require.ErrorContains(t, err, `there is no Kubernetes "1.2"`)
	for _, version := range Versions() {
		require.ErrorContains(t, err, version)
	}
	t.Setenv("KATES_KUBERNETES", "1.3")
	_, err = Start(t.Context(), WithKubernetes(""))
	require.ErrorContains(t, err, `KATES_KUBERNETES: there is no Kubernetes "1.3"`)
	_, err = Start(t.Context(), WithKubernetes("1.2"))
	require.ErrorContains(t, err, `there is no Kubernetes "1.2"`, "the option decides")
}

func TestTwoVersionsOfOneClusterAreAnError(t *testing.T) {
	_, err := Start(t.Context(), WithKubernetes("1.35"), WithKubernetes("1.36"))
	require.ErrorContains(t, err, "1.35 and 1.36")
	var s settings
	WithKubernetes("1.35")(&s)
	WithKubernetes("")(&s)
	WithKubernetes("1.35")(&s)
	version, err := s.version()
	require.NoError(t, err)
	require.Equal(t, "1.35", version)
}

func TestFlagsReplaceWhatThereIsAndAddUp(t *testing.T) {
	var s settings
	WithFlags("watch-cache=false", "--feature-gates=A=true")(&s)
	WithFlags("feature-gates=B=true", "-profiling")(&s)
	arguments := envtest.EmptyArguments()
	arguments.Set("watch-cache", "true").Set("advertise-address", loopback)
	setFlags(arguments, s.flags)
	require.ElementsMatch(t, []string{
		"--advertise-address=" + loopback, "--watch-cache=false",
		"--feature-gates=A=true", "--feature-gates=B=true", "--profiling",
	}, arguments.AsStrings(map[string][]string{"feature-gates": {"default"}}))
}

// counting counts the requests that pass it.
type counting struct {
	next http.RoundTripper
	n    *atomic.Int64
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return c.next.RoundTrip(r)
}

// requests counts those of all clients of the shared cluster.
var requests atomic.Int64

func count(next http.RoundTripper) http.RoundTripper { return counting{next, &requests} }

func TestTheTransportOfAllClientsIsWrapped(t *testing.T) {
	cluster := shared.Cluster(t)
	user, err := cluster.AddUser("wrapped", "system:masters")
	require.NoError(t, err)
	before := requests.Load()
	_, err = clientset(t, cluster.Config).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	between := requests.Load()
	require.Greater(t, between, before)
	_, err = clientset(t, user).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Greater(t, requests.Load(), between)
}
