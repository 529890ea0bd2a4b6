package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/examples/configmapgen/generator"
	"github.com/kates-go/kates/kates"
)

// The crash test kills its own program, which it starts anew with these variables in the
// environment.
const (
	crashingKubeconfig = "KATES_CRASHING_KUBECONFIG"
	crashingNamespaces = "KATES_CRASHING_NAMESPACES" // of the roots, and of their records
)

const crashFinalizer = "example.com/record"

// crashing is a controller. For each root it makes config maps that the root owns, and a record
// in another namespace, where owner references do not reach. There is no garbage collector: its
// finalizer removes both.
type crashing struct {
	client    *kates.Client
	elsewhere string
}

type crashingParts struct {
	Root       *generator.ConfigTemplate `kates:",root"`
	ConfigMaps []*corev1.ConfigMap       `kates:",owned"`
	Records    []*corev1.ConfigMap
	Info       controller.Info
}

// runCrashing is the program. It ends with its parent, unless it is killed before.
func runCrashing(kubeconfig, namespaces string) int {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	if err := crash(kubeconfig, namespaces); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func crash(kubeconfig, namespaces string) error {
	scheme, err := generator.Scheme()
	if err != nil {
		return err
	}
	client, err := kates.NewClient(kates.ClientConfig{Kubeconfig: kubeconfig}, kates.WithScheme(scheme),
		kates.WithLogger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))))
	if err != nil {
		return err
	}
	defer client.Close()
	ns, elsewhere, _ := strings.Cut(namespaces, ",")
	p := &crashing{client: client, elsewhere: elsewhere}
	c, err := controller.New(client, "crashing", p.reconcile, kates.WithWorkers(8),
		kates.Query{Name: "Root", Namespace: ns},
		kates.Query{Name: "ConfigMaps", Namespace: ns},
		kates.Query{Name: "Records", Namespace: elsewhere, Key: kates.ByAnnotation("root")})
	if err != nil {
		return err
	}
	return c.Run(context.Background())
}

// reconcile tells its parent when it begins to write, and when it ends.
func (c *crashing) reconcile(ctx context.Context, p *crashingParts) (controller.Result, error) {
	if p.Info.Departure != "" || p.complete() {
		return controller.Done, nil
	}
	fmt.Println("+", p.Info.Key)
	defer fmt.Println("-", p.Info.Key)
	return controller.Done, kates.UnderFinalizer(ctx, c.client, p.Root, crashFinalizer,
		func(ctx context.Context, _ *generator.ConfigTemplate) error { return c.make(ctx, p) },
		func(ctx context.Context, root *generator.ConfigTemplate) error { return c.clean(ctx, root) })
}

// complete reports whether everything is as wanted. If so, a crash leaves more time for the rest.
func (p *crashingParts) complete() bool {
	root, there := p.Root, map[string]map[string]string{}
	for _, cm := range p.ConfigMaps {
		there[cm.Name] = cm.Data
	}
	for _, wanted := range root.Spec.ConfigMaps {
		if !maps.Equal(there[root.Name+"-"+wanted.Name], wanted.Data) {
			return false
		}
	}
	return len(there) == len(root.Spec.ConfigMaps) && p.recorded() && root.Status.ObservedGeneration == root.Generation &&
		root.DeletionTimestamp == nil && slices.Contains(root.Finalizers, crashFinalizer)
}

// recorded reports whether the record exists, and no other one.
func (p *crashingParts) recorded() bool {
	return len(p.Records) == 1 && p.Records[0].Name == string(p.Root.UID) && p.Records[0].Data["generation"] == fmt.Sprint(p.Root.Generation)
}

func (c *crashing) make(ctx context.Context, p *crashingParts) error {
	root := p.Root
	set := kates.OwnedSet{Owner: root, SetName: "crashing"}
	for _, wanted := range root.Spec.ConfigMaps {
		cm := &corev1.ConfigMap{ObjectMeta: named(root.Namespace, root.Name+"-"+wanted.Name), Data: wanted.Data}
		set.Objects = append(set.Objects, cm)
	}
	for _, cm := range p.ConfigMaps {
		set.Existing = append(set.Existing, cm)
	}
	if _, err := c.client.ApplyOwned(ctx, set); err != nil {
		return err
	}
	if !p.recorded() {
		if err := c.client.Upsert(ctx, nil, c.record(root), nil); err != nil {
			return err
		}
	}
	next := root.DeepCopy()
	next.Status.ObservedGeneration = root.Generation
	meta.SetStatusCondition(&next.Status.Conditions, metav1.Condition{
		Type: generator.Ready, Status: metav1.ConditionTrue, Reason: "Made", ObservedGeneration: root.Generation,
	})
	_, err := kates.ModifyStatus(ctx, c.client, root, func(now *generator.ConfigTemplate) error {
		now.Status = next.Status
		return nil
	})
	return err
}

func (c *crashing) clean(ctx context.Context, root *generator.ConfigTemplate) error {
	err := c.client.DeleteAll(ctx, kates.Query{
		Kind: "configmaps", Namespace: root.Namespace, LabelSelector: fmt.Sprintf("%s=crashing.%s", kates.OwnedSetLabel, root.UID),
	})
	if gone := c.client.Delete(ctx, c.record(root), nil); !kates.IsNotFound(gone) {
		err = errors.Join(err, gone)
	}
	return err
}

// record returns the record of a root. It is named by the UID, so that it differs from the record
// of an earlier root of the same name.
func (c *crashing) record(root *generator.ConfigTemplate) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: named(c.elsewhere, string(root.UID)), Data: map[string]string{"generation": fmt.Sprint(root.Generation)}}
	cm.Annotations = map[string]string{"root": root.Namespace + "/" + root.Name}
	return cm
}
