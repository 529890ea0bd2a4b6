package controller_test

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

type (
	twoRoots struct {
		A *corev1.ConfigMap `kates:",root"`
		B *corev1.Secret    `kates:",root"`
	}
	noRoot   struct{ A []*corev1.ConfigMap }
	listRoot struct {
		A []*corev1.ConfigMap `kates:",root"`
	}
	valueRoot struct {
		A corev1.ConfigMap `kates:",root"`
	}
	optional struct {
		A *corev1.ConfigMap `kates:",root,optional"`
	}
	both struct {
		A *corev1.ConfigMap `kates:",root,owned"`
	}
	unknown struct {
		A *corev1.ConfigMap `kates:",rot"`
	}
	untagged struct {
		A *corev1.ConfigMap `kates:",root"`
		B []string
	}
	kindless struct {
		A *kates.Unstructured `kates:",root"`
	}
	oneOwned struct {
		A *corev1.ConfigMap  `kates:",root"`
		B *appsv1.Deployment `kates:",owned"`
	}
	lookedUp struct {
		A *corev1.ConfigMap            `kates:",root"`
		B kates.Lookup[*corev1.Secret] `kates:",owned"`
	}
	embedded struct{ B []*corev1.Secret }
	twoBs    struct {
		A *corev1.ConfigMap `kates:",root"`
		B []*corev1.Node
		embedded
	}
	twoInfos struct {
		A    *corev1.ConfigMap `kates:",root"`
		B, C controller.Info
	}
	untaggedRoot struct{ A *corev1.ConfigMap }
	infoPointer  struct {
		A *corev1.ConfigMap `kates:",root"`
		B *controller.Info
	}
	infoSlice struct {
		A *corev1.ConfigMap `kates:",root"`
		B []controller.Info
	}
	interfaces struct {
		A *corev1.ConfigMap `kates:",root"`
		B []kates.Object    `kates:",owned"`
	}
	ownKind struct {
		A *corev1.ConfigMap     `kates:",root"`
		B []*kates.Unstructured `kates:"cm,owned"`
	}
	ownNodes struct {
		A *corev1.ConfigMap `kates:",root"`
		B []*corev1.Node    `kates:",owned"`
	}
	nonsense struct {
		A *kates.Unstructured `kates:"nonsenses.example.com,root"`
	}
	fine struct {
		A *corev1.ConfigMap `kates:",root"`
	}
)

// made makes a controller, and runs it if it can be made.
func made[P any](t *testing.T, options ...kates.RunOption) (ofNew, ofRun error) {
	t.Helper()
	c, err := controller.New(katestest.NewClient(t), "x", func(context.Context, *P) (controller.Result, error) { return controller.Done, nil }, options...)
	if err != nil {
		return err, nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return nil, c.Run(ctx)
}

func TestWhatIsWrongWithTheStructOrAnOptionIsAnErrorOfNew(t *testing.T) {
	for text, of := range map[string]func(*testing.T, ...kates.RunOption) (error, error){
		"controller_test.twoRoots: field B: there is another root, A":                                                     made[twoRoots],
		"controller_test.noRoot: no field is the root: tag one `kates:\",root\"`":                                         made[noRoot],
		"field A: a root is a pointer to a struct (an API type or your own), or *kates.Unstructured, not []*v1.ConfigMap": made[listRoot],
		"field A: a root is a pointer to a struct (an API type or your own), or *kates.Unstructured, not v1.ConfigMap":    made[valueRoot],
		"field A: a root is not optional":                       made[optional],
		"field A: two roles in the tag `kates:\",root,owned\"`": made[both],
		"field A: unknown option \"rot\" in the tag `kates:\",rot\"`, there are \"optional\" and \"later\", and in a controller's type \"root\" and \"owned\"": made[unknown],
		"field B: it has type []string: string cannot hold an object":                                                                                          made[untagged],
		"field A: neither its type nor its tag nor its query says a kind":                                                                                      made[kindless],
		"field B: what is owned is a slice or a map, not *v1.Deployment":                                                                                       made[oneOwned],
		"field B: what is owned is a slice or a map, not kates.Lookup[*k8s.io/api/core/v1.Secret]":                                                             made[lookedUp],
		"field A: it has type *v1.ConfigMap: a query fills a slice, a map, a list or a Lookup; want []*v1.ConfigMap; " +
			"or, if it is the root, the tag `kates:\",root\"`; or, if it is no query, the tag `kates:\"-\"`": made[untaggedRoot],
		"field B has type *controller.Info: want controller.Info":                                                                            made[infoPointer],
		"field B has type []controller.Info: want controller.Info":                                                                           made[infoSlice],
		"field B: it has type []kates.Object: kates.Object is an interface, which does not say what an object becomes; want []*unstructured": made[interfaces],
		"field C: there is another one of type controller.Info":                                                                              made[twoInfos],
		"field B: there is another one of that name":                                                                                         made[twoBs],
		"a snapshot is a struct, not string":                                                                                                 made[string],
	} {
		ofNew, _ := of(t)
		assert.ErrorContains(t, ofNew, text)
		assert.ErrorContains(t, ofNew, `controller "x" of `)
	}
	for text, options := range map[string][]kates.RunOption{
		`field A: its query has a Key: the key of what is "root" is the root's name`: {kates.Query{Name: "A", Key: kates.ByNamespace}},
		"field A: a root is not optional":                                            {kates.Query{Name: "A", Optional: true}},
		`query "B": controller_test.fine has no exported field of`:                   {kates.Query{Name: "B"}},
		`label selector "=": `:                                                       {kates.Query{Name: "A", LabelSelector: "="}},
		"there must be one at least":                                                 {kates.WithWorkers(0)},
		"a backoff from 0s":                                                          {kates.WithBackoff(0, time.Second)},
		"WithShutdownTimeout is -1s: it cannot":                                      {kates.WithShutdownTimeout(-time.Second)},
		"a signal is nil":                                                            {kates.WithSignals(nil)},
		"an option is nil":                                                           {nil},
		"a lease: it has no Name":                                                    {kates.LeaderElection{}},
	} {
		ofNew, _ := made[fine](t, options...)
		assert.ErrorContains(t, ofNew, text)
	}
	_, err := controller.New[fine](katestest.NewClient(t), "x", nil)
	assert.EqualError(t, err, `controller "x" of controller_test.fine: there is no function to call`)
	f := func(context.Context, *fine) (controller.Result, error) { return controller.Done, nil }
	_, err = controller.New(katestest.NewClient(t), "", f)
	assert.ErrorContains(t, err, "it has no name")
	_, err = controller.New(nil, "x", f)
	assert.ErrorContains(t, err, "the client is nil")
}

func TestWhatOnlyTheServerKnowsToBeWrongIsAnErrorOfRun(t *testing.T) {
	for text, of := range map[string]func(*testing.T, ...kates.RunOption) (error, error){
		"field B: what is owned is of the root's kind, ConfigMap":                                  made[ownKind],
		"field B: its owner is in another namespace: nodes have no namespace, configmaps have one": made[ownNodes],
		`query "A": the server doesn't have a resource type "nonsenses.example.com"`:               made[nonsense],
	} {
		ofNew, ofRun := of(t)
		require.NoError(t, ofNew)
		assert.ErrorContains(t, ofRun, text)
		assert.ErrorContains(t, ofRun, `controller "x": `)
	}
}

func TestThatTheServerCannotBeReachedIsTheFirstThatRunSays(t *testing.T) {
	nobody := httptest.NewServer(nil)
	nobody.Close()
	client, err := kates.NewClientFromRESTConfig(&rest.Config{Host: nobody.URL})
	require.NoError(t, err)
	defer client.Close()
	c, err := controller.New(client, "x", func(context.Context, *fine) (controller.Result, error) { return controller.Done, nil })
	require.NoError(t, err)
	err = c.Run(t.Context())
	require.ErrorIs(t, err, kates.ErrIncompleteDiscovery)
	assert.Regexp(t, "^cannot reach the API server at "+nobody.URL+`: .* \(controller "x": query "A": look up kind `, err.Error())
}

func TestTagsOfAControllerAreErrorsElsewhere(t *testing.T) {
	c := katestest.NewClient(t)
	_, err := kates.Watch[listRoot](t.Context(), c)
	assert.ErrorContains(t, err, `field A: the option "root" is of package controller`)
}

func TestStatusBeforeItHasRunAndWhileItDoes(t *testing.T) {
	inWorld(t, func(w *world) {
		w.root("a", "u1", "1")
		c := &calls{}
		idle, err := controller.New(w.Client, "idle", c.reconcile, bySecret)
		require.NoError(t, err)
		assert.EqualError(t, idle.Ready(), `controller "idle": it has not started to watch`)
		assert.EqualError(t, idle.Add(t.Context()), `controller "idle": the run has not started to watch, or has ended`)
		assert.EqualError(t, new(kates.Handle).Ready(), "the run has not started to watch, or has ended")
		assert.Equal(t, controller.Status{Name: "idle"}, idle.Status())
		assert.Empty(t, idle.Keys())
		assert.True(t, idle.NeedLeaderElection())
		r := run(w, c.reconcile, bySecret)
		status := r.Status()
		require.Len(t, status.Watches.Queries, 4)
		assert.Equal(t, "Deployments", status.Watches.Queries[1].Name)
		assert.Equal(t, 1, status.Roots)
		assert.Equal(t, []string{"ns/a"}, r.Keys())
		assert.NoError(t, status.Watches.Err())
		r.stop()
		assert.NoError(t, r.Ready(), "it never turns back")
	})
}
