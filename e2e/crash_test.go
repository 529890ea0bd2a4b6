package e2e

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kates-go/kates/e2e/internal/secrecy"
	"github.com/kates-go/kates/examples/configmapgen/generator"
	"github.com/kates-go/kates/kates"
)

const (
	crashRoots = 300
	crashes    = 30
)

// crashTest is the environment of a controller that is killed again and again.
type crashTest struct {
	*testing.T
	ns, elsewhere string
	users         *kates.Client // they create, change and delete roots
	admin         *kubernetes.Clientset
	kubeconfig    string

	mu      sync.Mutex
	changes map[string]int
}

func newCrashTest(t *testing.T) *crashTest {
	t.Helper()
	scheme, err := generator.Scheme()
	require.NoError(t, err)
	users, err := tapped(kates.NewClientFromRESTConfig(testCluster.Config, kates.WithScheme(scheme)))
	require.NoError(t, err)
	t.Cleanup(users.Close)
	admin, err := kubernetes.NewForConfig(testCluster.Config)
	require.NoError(t, err)
	c := &crashTest{T: t, ns: namespace(t), elsewhere: namespace(t), users: users, admin: admin, changes: map[string]int{}}
	content, err := testCluster.AdminKubeconfig()
	require.NoError(t, err)
	c.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(c.kubeconfig, content, 0o600))
	return c
}

// The controller is killed (SIGKILL) 30 times while it reconciles 300 roots. Meanwhile roots are
// created, changed and deleted.
func TestAControllerThatIsKilledAtAnyTimeLeavesNothingTwiceNothingBehindAndConverges(t *testing.T) {
	t.Parallel()
	c := newCrashTest(t)
	t.Logf("seed %d", *seed)
	r := rand.New(rand.NewPCG(*seed, 0))
	began := time.Now()
	c.populate()
	changing, stop := context.WithCancel(t.Context())
	defer stop()
	var changers sync.WaitGroup
	for i := range uint64(2) {
		changers.Go(func() { c.change(changing, rand.New(rand.NewPCG(*seed, 1+i))) })
	}

	amidst, reconciles := 0, 0
	for i := range crashes {
		p := c.start()
		if i%5 > 0 { // otherwise it may not have begun its work
			p.waitForWork()
		}
		share := r.Float64() // squared: short lives are more frequent
		pause(t.Context(), 100*time.Millisecond+time.Duration(900*share*share)*time.Millisecond)
		p.kill()
		if p.running() > 0 {
			amidst++
		}
		reconciles += p.ended
	}
	stop()
	changers.Wait()
	t.Logf("%d crashes in %s, %d of them amidst a reconcile, after %d whole ones; %v", crashes, time.Since(began), amidst, reconciles, c.changes)
	assert.Greater(t, amidst, crashes/5, "the crashes come when nothing happens")
	assert.Positive(t, c.changes["deleted"])

	last := c.start()
	defer last.kill()
	wrong := c.judge()
	for tries := 0; len(wrong) > 0 && tries < 120; tries++ {
		pause(t.Context(), 500*time.Millisecond)
		wrong = c.judge()
	}
	t.Logf("judged after %s", time.Since(began))
	assert.Empty(t, wrong[:min(len(wrong), 10)], "%d things are wrong at the end; it said:\n%s", len(wrong), last.said())
	was := c.versions()
	pause(t.Context(), time.Second)
	assert.Equal(t, was, c.versions(), "it has come to rest")
}

func rootName(i int) string { return fmt.Sprintf("root-%03d", i) }

// anySpec returns what a root wants: one to three config maps.
func anySpec(r *rand.Rand) generator.ConfigTemplateSpec {
	var spec generator.ConfigTemplateSpec
	for i := range 1 + r.IntN(3) {
		spec.ConfigMaps = append(spec.ConfigMaps, generator.ConfigMapTemplate{
			Name: fmt.Sprint(i), Data: map[string]string{"n": fmt.Sprint(r.IntN(1000))},
		})
	}
	return spec
}

// populate makes the roots that exist before the first start.
func (c *crashTest) populate() {
	c.Helper()
	var users sync.WaitGroup
	for user := range 8 {
		users.Go(func() {
			r := rand.New(rand.NewPCG(*seed, uint64(100+user)))
			for i := user; i < crashRoots; i += 8 {
				assert.NoError(c, c.create(c.Context(), r, rootName(i)))
			}
		})
	}
	users.Wait()
}

func (c *crashTest) create(ctx context.Context, r *rand.Rand, name string) error {
	return c.users.Create(ctx, &generator.ConfigTemplate{ObjectMeta: named(c.ns, name), Spec: anySpec(r)}, nil)
}

// change changes roots until ctx ends. It runs twice; each rests a little after each change.
func (c *crashTest) change(ctx context.Context, r *rand.Rand) {
	for ctx.Err() == nil {
		name, spec := rootName(r.IntN(crashRoots)), anySpec(r)
		root := &generator.ConfigTemplate{ObjectMeta: named(c.ns, name)}
		what, err := "changed", error(nil)
		if r.IntN(4) == 0 {
			what, err = "deleted", c.delete(ctx, root)
		} else {
			_, err = kates.Modify(ctx, c.users, root, func(t *generator.ConfigTemplate) error { t.Spec = spec; return nil })
		}
		if kates.IsNotFound(err) {
			what, err = "created", c.create(ctx, r, name)
		}
		switch {
		case err == nil:
			c.mu.Lock()
			c.changes[what]++
			c.mu.Unlock()
		case ctx.Err() == nil && !apierrors.IsAlreadyExists(err):
			c.Errorf("%s is not %s: %v", name, what, err)
		}
		pause(ctx, 20*time.Millisecond)
	}
}

// delete deletes a root in the version that it has. A deletion on no condition would at times take
// away a root that gets its finalizer at that moment, finalizer and all: see S17 in
// docs/failures.md. A process that is killed then leaves things behind, whatever it does.
func (c *crashTest) delete(ctx context.Context, root *generator.ConfigTemplate) error {
	for {
		now := &generator.ConfigTemplate{}
		err := c.users.Get(ctx, root, now)
		if err == nil {
			err = c.users.Delete(ctx, root, nil, kates.IfResourceVersion(now.ResourceVersion))
		}
		if !kates.IsConflict(err) {
			return err
		}
	}
}

// judge lists what is wrong at the end.
func (c *crashTest) judge() (wrong []string) {
	ctx := c.Context()
	var roots []*generator.ConfigTemplate
	require.NoError(c, c.users.List(ctx, kates.Query{Kind: "configtemplates", Namespace: c.ns}, &roots))
	owned, err := c.admin.CoreV1().ConfigMaps(c.ns).List(ctx, metav1.ListOptions{})
	require.NoError(c, err)
	records, err := c.admin.CoreV1().ConfigMaps(c.elsewhere).List(ctx, metav1.ListOptions{})
	require.NoError(c, err)

	want, got := map[string]string{}, map[string]string{} // by object name
	for _, root := range roots {
		ready := kates.FindCondition(root, generator.Ready)
		if !slices.Contains(root.Finalizers, crashFinalizer) || ready == nil || ready.Status != metav1.ConditionTrue ||
			root.Status.ObservedGeneration != root.Generation || root.DeletionTimestamp != nil {
			wrong = append(wrong, fmt.Sprintf("%s at generation %d: deletion %v, finalizers %v, status %+v",
				root.Name, root.Generation, root.DeletionTimestamp, root.Finalizers, root.Status))
		}
		want["record "+string(root.UID)] = fmt.Sprintf("map[generation:%d]", root.Generation)
		for _, cm := range root.Spec.ConfigMaps {
			want[fmt.Sprintf("config map %s-%s", root.Name, cm.Name)] = fmt.Sprintf("%v of %s", cm.Data, root.UID)
		}
	}
	for _, cm := range owned.Items {
		owner := metav1.GetControllerOf(&cm)
		if owner == nil {
			owner = &metav1.OwnerReference{UID: "nobody"}
		}
		got["config map "+cm.Name] = fmt.Sprintf("%v of %s", cm.Data, owner.UID)
	}
	for _, cm := range records.Items {
		got["record "+cm.Name] = fmt.Sprint(cm.Data)
	}
	for what, is := range got {
		if want[what] != is {
			wrong = append(wrong, fmt.Sprintf("%s: %s, not %q", what, is, want[what]))
		}
	}
	for what := range want {
		if _, there := got[what]; !there {
			wrong = append(wrong, what+" is missing")
		}
	}
	return wrong
}

// versions returns the versions of everything that the controller writes.
func (c *crashTest) versions() map[string]string {
	all := map[string]string{}
	for _, q := range []kates.Query{{Kind: "configtemplates", Namespace: c.ns}, {Kind: "configmaps", Namespace: c.ns}, {Kind: "configmaps", Namespace: c.elsewhere}} {
		var objects []*kates.PartialObjectMetadata
		require.NoError(c, c.users.List(c.Context(), q, &objects))
		for _, o := range objects {
			all[q.Kind+" "+o.Namespace+" "+o.Name] = o.ResourceVersion
		}
	}
	return all
}

// crashable is a process that runs the controller.
type crashable struct {
	t      *crashTest
	cmd    *exec.Cmd
	stdin  io.Closer
	errors bytes.Buffer
	first  chan struct{} // closed when it has begun to reconcile
	read   chan struct{} // closed when all its output is read

	begun map[string]bool
	ended int
	dead  atomic.Bool
}

func (c *crashTest) start() *crashable {
	c.Helper()
	p := &crashable{t: c, cmd: exec.Command(os.Args[0]), first: make(chan struct{}), read: make(chan struct{}), begun: map[string]bool{}}
	p.cmd.Env = append(os.Environ(), crashingKubeconfig+"="+c.kubeconfig, crashingNamespaces+"="+c.ns+","+c.elsewhere)
	p.cmd.Stderr = io.MultiWriter(&p.errors, secrecy.Writer())
	stdin, err := p.cmd.StdinPipe()
	require.NoError(c, err)
	p.stdin = stdin
	out, err := p.cmd.StdoutPipe()
	require.NoError(c, err)
	require.NoError(c, p.cmd.Start())
	go func() { // ends with the process
		defer close(p.read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			switch what, key, _ := strings.Cut(lines.Text(), " "); what {
			case "+":
				if len(p.begun)+p.ended == 0 {
					close(p.first)
				}
				p.begun[key] = true
			case "-":
				delete(p.begun, key)
				p.ended++
			}
		}
	}()
	return p
}

// waitForWork returns when the process reconciles.
func (p *crashable) waitForWork() {
	p.t.Helper()
	select {
	case <-p.first:
	case <-p.read:
		p.t.Fatalf("it has ended by itself: %v: %s", p.cmd.Wait(), &p.errors)
	case <-time.After(patience):
		p.t.Fatalf("it does not begin: %s", p.said())
	}
}

// kill sends SIGKILL and waits for the end.
func (p *crashable) kill() {
	if p.dead.Swap(true) {
		return
	}
	require.NoError(p.t, p.cmd.Process.Kill())
	<-p.read
	err := p.cmd.Wait()
	require.ErrorContains(p.t, err, "killed", "it ended by itself: %s", &p.errors)
	_ = p.stdin.Close()
}

// running returns how many reconciles the kill interrupted.
func (p *crashable) running() int { return len(p.begun) }

// said kills the process and returns its log.
func (p *crashable) said() string {
	p.kill()
	return p.errors.String() + strings.Join(slices.Sorted(maps.Keys(p.begun)), " ")
}
