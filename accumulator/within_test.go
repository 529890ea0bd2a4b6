package accumulator

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"
)

// narrow is a source of all namespaces that notes for which of them it is asked.
type narrow struct {
	cache.ListerWatcherWithContext
	within func(namespace string) cache.ListerWatcherWithContext
}

func (n narrow) Within(namespace string) cache.ListerWatcherWithContext { return n.within(namespace) }

func TestG4AWriteIsSettledByAListOfTheObjectsNamespace(t *testing.T) {
	bubble(t, Config{StreamLists: true}, func(t *testing.T, s *sim, streams *Streams) {
		var asked []string
		streams.config.Source = func(r Resource, namespace string, form Form) cache.ListerWatcherWithContext {
			return narrow{s.source(r, namespace, form), func(namespace string) cache.ListerWatcherWithContext {
				asked = append(asked, namespace)
				return s.source(r, namespace, form)
			}}
		}
		q := simQuery("A", "as")
		q.Fields = fields.OneTermNotEqualSelector("spec.node", "n1") // which only the server can judge
		all := watching(t, streams, Options{}, q)
		q.Namespace = "ns"
		some := watching(t, streams, Options{}, q)
		synctest.Wait()
		s.late(time.Hour)
		own{s, streams}.put("as", thing("x"), 0)
		assert.Equal(t, []string{"ns"}, asked, "one of the streams has all namespaces")
		for _, acc := range []*Accumulator{all, some} {
			var snap one
			update(t, acc, &snap)
			assert.Len(t, snap.A, 1)
		}
	})
}
