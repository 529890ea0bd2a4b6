package withruntime

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/examples/gateway/nginx"
	"github.com/kates-go/kates/examples/gateway/translate"
)

// desired is the part of an Ingress with these paths of one host.
func desired(upstream string, paths ...string) *translate.Desired {
	s := nginx.Server{Port: 80, Host: "a.example.com"}
	for _, path := range paths {
		s.Locations = append(s.Locations, nginx.Location{
			Path: path, Match: nginx.Prefix, Rules: []nginx.Rule{{Backends: []nginx.Backend{{Upstream: upstream, Weight: 1}}}},
		})
	}
	return &translate.Desired{
		Config:  nginx.Config{Servers: []nginx.Server{s}, Upstreams: map[string][]string{upstream: {"10.0.0.1:80"}}},
		Reports: []translate.Report{{Problems: []translate.Problem{{Reason: upstream}}}},
	}
}

func ingress(name string, age time.Duration) *networkingv1.Ingress {
	return &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(1e9, 0).Add(-age))}}
}

func TestPartsAreOneConfigurationAndTheOlderIngressHasAPath(t *testing.T) {
	p := newParts()
	assert.True(t, p.put(types.NamespacedName{Name: "new"}, ingress("new", 0), desired("new", "/shop", "/")))
	assert.True(t, p.put(types.NamespacedName{Name: "old"}, ingress("old", time.Hour), desired("old", "/shop/cart", "/")))
	assert.Len(t, p.changed, 1)
	c := p.config()
	assert.Len(t, c.Upstreams, 2)
	var got []string
	for _, l := range c.Servers[0].Locations {
		got = append(got, l.Path+" "+l.Rules[0].Backends[0].Upstream)
	}
	assert.Equal(t, []string{"/shop/cart old", "/shop new", "/ old"}, got)
	assert.Positive(t, c.Settings.Connections)
	assert.Equal(t, c, p.config(), "the parts stay as they are")

	p.remove(types.NamespacedName{Name: "old"})
	assert.Len(t, p.config().Servers[0].Locations, 2)
}

func TestAReportIsNewIfItSaysSomethingElse(t *testing.T) {
	p, name := newParts(), types.NamespacedName{Name: "one"}
	assert.True(t, p.put(name, ingress("one", 0), desired("a", "/")))
	assert.False(t, p.put(name, ingress("one", 0), desired("a", "/other")))
	assert.True(t, p.put(name, ingress("one", 0), desired("b", "/")))
	assert.True(t, p.put(name, ingress("one", 0), &translate.Desired{}))
	assert.Nil(t, p.get(name).report)
}
