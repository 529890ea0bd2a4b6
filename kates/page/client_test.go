package page

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// look returns a page without a connection.
func look(t *testing.T, p *Page, address string) string {
	t.Helper()
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/"+address, nil))
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	return strings.ReplaceAll(w.Body.String(), "<wbr>", "")
}

type snapshot struct {
	ConfigMaps []*corev1.ConfigMap
	Secrets    []*corev1.Secret
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "shop", Name: name} }

func TestAPageShowsAClientThatHasItAsAnObserverUntilThatIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := katestest.NewServer(t, katestest.WithObjects(
			&corev1.ConfigMap{ObjectMeta: named("settings"), Data: map[string]string{"level": "info"}},
			&corev1.Secret{ObjectMeta: named("database"), Data: map[string][]byte{"password": []byte(planted)}}))
		faults := katestest.NewFaults(t, 1)
		config := rest.CopyConfig(server.Config)
		config.Wrap(faults.Wrap)
		p := New()
		defer p.Close()
		assert.Contains(t, look(t, p, ""), "This page knows no client")
		client, err := kates.NewClientFromRESTConfig(config, kates.WithInterval(0), kates.WithObserver(p), kates.WithName("app"))
		require.NoError(t, err)
		defer client.Close()
		watch, err := kates.Watch[snapshot](t.Context(), client)
		require.NoError(t, err)
		<-watch.Changed()
		var snap snapshot
		_, err = watch.Update(t.Context(), &snap)
		require.NoError(t, err)
		synctest.Wait() // the watches are open
		assert.Contains(t, look(t, p, ""), "Nothing: every watch is open")
		assert.Contains(t, look(t, p, "snapshots"), "shop/database")
		assert.Contains(t, look(t, p, "requests"), "watch secrets.v1")
		assert.Contains(t, look(t, p, "objects?query=Secrets"), "shop/database")
		clean(t, "the Secret", look(t, p, "object?query=Secrets&namespace=shop&name=database"))
		assert.Contains(t, look(t, p, "object?query=ConfigMaps&namespace=shop&name=settings"), "info")

		// the watch hangs, and the program writes
		faults.Now(katestest.Match{Verb: "watch", Resource: "configmaps"}).Stall(0)
		require.NoError(t, client.Update(t.Context(), &corev1.ConfigMap{ObjectMeta: named("settings"), Data: map[string]string{"level": "debug"}}, nil))
		time.Sleep(126 * time.Second)
		found := causes(p)
		assert.Contains(t, found, "half-open")
		assert.Contains(t, found, "pending-writes")
		assert.Contains(t, found, "slow-reader")
		assert.Contains(t, look(t, p, "journal"), "shop/settings")
		object := look(t, p, "object?query=ConfigMaps&namespace=shop&name=settings&only=differing")
		assert.Contains(t, object, "An own write is laid over it")
		assert.Contains(t, object, "It has changed since the last snapshot")
		assert.Contains(t, object, "data.level")
		time.Sleep(100 * time.Second) // the client opens another watch
		assert.NotContains(t, causes(p), "half-open")

		client.Close()
		assert.Contains(t, look(t, p, ""), "This page knows no client")
		assert.NotContains(t, look(t, p, "requests"), "secrets.v1")
	})
}

func TestThePageOfAFleetHasItsClustersAndSaysWhichAreDown(t *testing.T) {
	p := New()
	defer p.Close()
	f, err := fleet.New(fleet.Options{Client: []kates.Option{kates.WithObserver(p)}, Probe: time.Millisecond, Timeout: time.Second})
	require.NoError(t, err)
	defer f.Close()
	p.Fleet(f)
	changed, stop := f.Listen()
	defer stop()
	for _, name := range []string{"eu", "us"} {
		require.NoError(t, f.Add(name, &rest.Config{Host: "http://127.0.0.1:1"}))
	}
	down := func() (n int) {
		for _, of := range p.stateNow("").problems {
			if of.Cause == "cluster-down" {
				n++
			}
		}
		return n
	}
	for down() < 2 {
		<-changed
	}
	body := look(t, p, "")
	for _, says := range []string{"eu", "us", "unreachable", "Sources of clusters", "the program"} {
		assert.Contains(t, body, says)
	}
	assert.Len(t, p.members(), 2)
	f.Close()
	assert.Empty(t, p.members())
}
