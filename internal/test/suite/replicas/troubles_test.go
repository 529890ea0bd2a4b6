package replicas

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
)

// line is the way of a replica's requests to the server.
type line struct {
	next http.RoundTripper

	mu     sync.Mutex
	frozen chan struct{} // closed when requests go on
	refuse string        // a part of the paths of requests that fail
}

func (l *line) RoundTrip(req *http.Request) (*http.Response, error) {
	l.mu.Lock()
	frozen, refuse := l.frozen, l.refuse
	l.mu.Unlock()
	if frozen != nil {
		select {
		case <-frozen:
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
	if refuse != "" && strings.Contains(req.URL.Path, refuse) {
		return nil, errors.New("the line is down")
	}
	return l.next.RoundTrip(req)
}

// WrappedRoundTripper lets others find the transport beneath.
func (l *line) WrappedRoundTripper() http.RoundTripper { return l.next }

func (l *line) freeze() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frozen = make(chan struct{})
}

func (l *line) thaw() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.frozen)
	l.frozen = nil
}

func (l *line) fail(refuse string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refuse = refuse
}

// joinOver is join over a line.
func (d *divided) joinOver(name string, l *line) *dividedReplica {
	config := rest.CopyConfig(d.server.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		l.next = next
		return l
	})
	c, err := kates.NewClientFromRESTConfig(config, kates.WithLogger(silent), kates.WithInterval(0))
	require.NoError(d.t, err)
	d.t.Cleanup(c.Close)
	return d.joinWith(name, c)
}

// TestReplicasThatFreezeLoseTheirKeysAndComeBack: no request of a replica gets through for a
// while. It is the one that proposes plans, or another one.
func TestReplicasThatFreezeLoseTheirKeysAndComeBack(t *testing.T) {
	divide(t, func(t *testing.T, d *divided) {
		lines := []*line{{}, {}, {}}
		var all []*dividedReplica
		for i, l := range lines {
			all = append(all, d.joinOver(string(rune('a'+i)), l))
		}
		d.rest(all...)
		for i, l := range lines {
			others := append(append([]*dividedReplica{}, all[:i]...), all[i+1:]...)
			l.freeze()
			<-time.After(time.Minute)
			d.put(others[0].client, d.teams[i], "first-0", "while one is frozen")
			d.rest(others...)
			l.thaw()
			d.rest(all...)
		}
		d.stop(all...)
	})
}

// TestAReplicaThatDividesOtherwiseHasAllDivideByName: all watch everything then, each key has one
// owner nevertheless, and when it has gone they hold their parts again.
func TestAReplicaThatDividesOtherwiseHasAllDivideByName(t *testing.T) {
	divide(t, func(t *testing.T, d *divided) {
		a, b := d.join("a"), d.join("b")
		d.rest(a, b)
		c := d.join("c", kates.Sharding{Namespace: "default", Name: "group", Identity: "c", By: kates.ShardByKey})
		<-time.After(2 * time.Minute)
		keys := 0
		for _, r := range []*dividedReplica{a, b, c} {
			s := r.status()
			keys += s.Keys
			assert.Zero(t, s.Ranges)
			assert.Equal(t, 3*len(d.teams), r.objects(), "%s has everything", r.name)
		}
		assert.Contains(t, a.status().Streams, "divides keys otherwise: by their names")
		assert.Contains(t, c.status().Streams, "no server can select")
		assert.Equal(t, len(d.teams), keys)
		d.stop(c)
		d.rest(a, b)
		d.stop(a, b)
	})
}

// TestAShardWhoseWatchesCannotBringItsKeysSaysSoAndTriesAgain: nobody works for these keys until
// it has their objects, and it keeps those that it has.
func TestAShardWhoseWatchesCannotBringItsKeysSaysSoAndTriesAgain(t *testing.T) {
	divide(t, func(t *testing.T, d *divided) {
		l := &line{}
		a, b := d.joinOver("a", l), d.join("b")
		d.rest(a, b)
		d.taken()
		had := a.status().Keys
		l.fail("configmaps")
		d.stop(b)
		<-time.After(time.Minute)
		assert.Equal(t, had, a.status().Keys, "it keeps what it has")
		assert.Empty(t, d.taken(), "and begins with nothing of which it does not have all")
		assert.ErrorContains(t, a.client.Status().Err(), "the line is down")
		l.fail("")
		d.rest(a)
		assert.Len(t, d.taken(), len(d.teams)-had)
		d.stop(a)
	})
}
