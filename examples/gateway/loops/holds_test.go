package loops

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/kates-go/kates/examples/gateway/nginx"
	"github.com/kates-go/kates/examples/gateway/translate"
	"github.com/kates-go/kates/kates"
)

// These tests attack with many objects of one namespace that nginx refuses.

// counted is a real nginx. It notes how many checks there were when it began to serve a host.
type counted struct {
	*nginx.Nginx
	since  map[string]int
	serves *nginx.Config
}

func openNginx(t *testing.T) *counted {
	t.Helper()
	dir, err := os.MkdirTemp("", "gw")
	require.NoError(t, err)
	n, err := nginx.Open(nginx.Options{Dir: dir, ReloadTimeout: 2 * time.Minute})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, n.Close(context.Background()))
		assert.NoError(t, os.RemoveAll(dir))
	})
	return &counted{Nginx: n, since: map[string]int{}}
}

// Apply waits for the pause between two reloads.
func (c *counted) Apply(ctx context.Context, config *nginx.Config) (nginx.Outcome, error) {
	for {
		out, err := c.Nginx.Apply(ctx, config)
		if err != nil || out.Again == 0 {
			if out.Active {
				c.serves = config
				for _, host := range hosts(config) {
					if _, known := c.since[host]; !known {
						c.since[host] = c.Stats().Checks
					}
				}
			}
			return out, err
		}
		pause(ctx, out.Again)
	}
}

// gatewayOf is a gateway that is given its snapshots.
func gatewayOf(t *testing.T, n Nginx) *Gateway {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	require.NoError(t, l.Close())
	g := &Gateway{Nginx: n, Logger: slog.New(slog.DiscardHandler), Translate: translate.Options{
		Address: netip.MustParseAddr("127.0.0.1"), Port: func(int) int { return port },
	}}
	g.init()
	return g
}

// tenant makes an Ingress of a namespace, which nginx refuses if it is bad.
func tenant(namespace, host, version string, bad bool) string {
	text := strings.ReplaceAll(ingressOf(host, host), "namespace: shop", "namespace: "+namespace+", uid: "+namespace+"-"+host+", resourceVersion: '"+version+"'")
	if bad {
		text = strings.Replace(text, "path: /", "path: /"+strings.Repeat("x", 5000), 1)
	}
	return text
}

// tenants is a snapshot of Ingresses.
func tenants(t *testing.T, manifests ...string) *translate.Snapshot {
	snap := &translate.Snapshot{}
	objects, err := kates.ParseManifests(shop+"---"+strings.Join(manifests, "---"), kates.InScheme(translate.Scheme()))
	require.NoError(t, err)
	for _, o := range objects {
		switch o := o.(type) {
		case *networkingv1.IngressClass:
			snap.Classes = append(snap.Classes, o)
		case *networkingv1.Ingress:
			if o.UID != "" {
				snap.Ingresses = append(snap.Ingresses, o)
			}
		case *corev1.Service:
			for _, namespace := range []string{"victim", "attacker"} {
				service := o.DeepCopy()
				service.Namespace = namespace
				snap.Services = append(snap.Services, service)
			}
		}
	}
	return snap
}

// problemsIn are the reasons of the problems of a namespace, by Ingress.
func (g *Gateway) problemsIn(snap *translate.Snapshot, namespace string) map[string]string {
	all := map[string]string{}
	for _, r := range translate.Translate(snap, g.translateOptions(snap)).Reports {
		for _, p := range r.Problems {
			if r.Object.GetNamespace() == namespace && p.Reason != "NoEndpoints" {
				all[r.Object.GetName()] += p.Reason
			}
		}
	}
	return all
}

const (
	// mostChecks is how often nginx checks a configuration, at most, before it serves what others
	// have changed: see SECURITY.md.
	mostChecks = 10
	// fewChecks is the same where no namespace is held.
	fewChecks = 6
)

func TestManyBadObjectsOfANamespaceHoldNobodyElse(t *testing.T) {
	const many = 200
	n := openNginx(t)
	g := gatewayOf(t, n)
	good := []string{tenant("victim", "v", "1", false), tenant("attacker", "old", "1", false)}
	require.NoError(t, g.configure(t.Context(), tenants(t, good...)))

	attack := []string{tenant("attacker", "old", "2", true), tenant("attacker", "good", "1", false)}
	for i := range many {
		attack = append(attack, tenant("attacker", fmt.Sprint("bad-", i), "1", true))
	}
	snap := tenants(t, slices.Concat(attack, []string{tenant("victim", "v", "1", false), tenant("victim", "v2", "1", false)})...)
	before := n.Stats().Checks
	require.Equal(t, kates.Again(configureInterval), g.configure(t.Context(), snap))
	assert.LessOrEqual(t, n.since["v2.example.com"]-before, fewChecks)
	assert.Equal(t, []string{"old.example.com", "v.example.com", "v2.example.com"}, sorted(hosts(n.serves)), "what was served before is served")
	problems := g.problemsIn(snap, "attacker")
	assert.Len(t, problems, many+2)
	assert.Equal(t, "Held", problems["good"])
	assert.Empty(t, g.problemsIn(snap, "victim"))

	// The victim changes while the objects at fault are found.
	snap = tenants(t, slices.Concat(attack, []string{tenant("victim", "v", "1", false), tenant("victim", "v3", "1", false)})...)
	err := kates.Again(configureInterval)
	steps := 0
	for ; err != nil; steps++ {
		require.Equal(t, kates.Again(configureInterval), err)
		require.Less(t, steps, many, "each step finds some")
		before = n.Stats().Checks
		err = g.configure(t.Context(), snap)
		assert.LessOrEqual(t, n.Stats().Checks-before, mostChecks)
	}
	t.Logf("%d objects are found in %d steps, with %d checks", many, steps, n.Stats().Checks)
	assert.Equal(t, []string{"good.example.com", "old.example.com", "v.example.com", "v3.example.com"}, sorted(hosts(n.serves)))
	problems = g.problemsIn(snap, "attacker")
	assert.Len(t, problems, many+1)
	for name, reason := range problems {
		assert.Equal(t, "Refused", reason, name)
	}

	// Another gateway starts: nothing is known.
	g, n.since, before = gatewayOf(t, n), map[string]int{}, n.Stats().Checks
	require.Equal(t, kates.Again(configureInterval), g.configure(t.Context(), snap))
	assert.LessOrEqual(t, n.since["v3.example.com"]-before, fewChecks)
	assert.Equal(t, []string{"v.example.com", "v3.example.com"}, sorted(hosts(n.serves)))
}

// many is what nginx says of a namespace that is held.
var many = nginx.Outcome{
	Refused: []nginx.Refusal{{Object: nginx.Object{Namespace: "attacker", UID: "attacker-bad"}, Message: "no"}},
	Held:    []nginx.Hold{{Namespace: "attacker", Message: "no"}},
}

func TestANamespaceWhoseLastGoodVersionsAreRefusedIsLeftOut(t *testing.T) {
	var r refusals
	r.init()
	r.accept(tenants(t, tenant("attacker", "bad", "1", false), tenant("attacker", "good", "1", false), tenant("victim", "v", "1", false)))
	snap := tenants(t, tenant("attacker", "bad", "2", true), tenant("attacker", "good", "2", false), tenant("attacker", "new", "1", false), tenant("victim", "v", "2", false))
	require.NoError(t, r.refuse(snap, many))
	lastGood := func(try string) (all []string) {
		for uid, one := range r.inForce(snap, try) {
			version := "none"
			if one.LastGood != nil {
				version = one.LastGood.GetResourceVersion()
			}
			all = append(all, fmt.Sprint(uid, " ", version, " ", one.Held))
		}
		return sorted(all)
	}
	assert.Equal(t, []string{"attacker-bad 1 false", "attacker-good 1 true", "attacker-new none true"}, lastGood(""))
	assert.Equal(t, []string{"attacker-bad 1 false"}, lastGood("attacker"))
	r.accept(snap)
	assert.Equal(t, []string{"attacker-bad 1 false", "attacker-good 1 true", "attacker-new none true"}, lastGood(""), "the versions stay")

	require.NoError(t, r.refuse(snap, many))
	nothing := []string{"attacker-bad none false", "attacker-good none true", "attacker-new none true"}
	assert.Equal(t, nothing, lastGood(""))
	require.ErrorContains(t, r.refuse(snap, many), "nginx still refuses the configuration")
	r.accept(snap)
	assert.Equal(t, nothing, lastGood(""))

	assert.True(t, r.tried(snap, "attacker", many.Refused, true))
	assert.Equal(t, []string{"attacker-bad none false"}, lastGood(""))
	assert.True(t, r.accept(snap), "the others are to be told")
	assert.False(t, r.accept(snap))
	assert.Empty(t, r.turn())
}

func TestEachNamespaceThatIsHeldIsTriedInItsTurn(t *testing.T) {
	var r refusals
	r.init()
	snap := tenants(t)
	for _, namespace := range []string{"b", "a", "ab"} {
		r.holds.add(nginx.Hold{Namespace: namespace})
	}
	assert.Equal(t, []string{"a", "ab", "b", "a"}, []string{r.turn(), r.turn(), r.turn(), r.turn()})
	// What nginx has against another namespace is found when it is to serve that.
	assert.False(t, r.tried(snap, "ab", many.Refused, true))
	assert.Equal(t, []string{"ab", "b"}, []string{r.turn(), r.turn()})
	assert.False(t, r.tried(snap, "ab", nil, true))
	assert.Equal(t, []string{"a", "b", "a"}, []string{r.turn(), r.turn(), r.turn()})
}
