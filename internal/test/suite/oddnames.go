package suite

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
)

// oddNameScenarios are about Roles, whose names may be any segments of a path. In protobuf a
// name need not even be UTF-8.
var oddNameScenarios = []scenario{
	{"G8NamesOfAnyCharactersAreShownInEveryForm", inEveryForm(anyCharacters)},
	{"G8ANameThatIsNoUTF8HoldsUpNothing", inEveryForm(noUTF8)},
	{"G8NamesThatJSONMakesOneAreInvalidUntilOneIsLeft", oneNameOfTwo},
	{"G8StreamsOfOneQueryThatEachShowANamesakeShowNeither", oneNameOfTwoStreams},
	{"G4ObjectsWithOddNamesAreWrittenAndRead", oddWrites},
	{"ANameThatIsNoUTF8IsAnErrorOfEveryCall", noUTF8Calls},
	{"AListGoesOnBehindAPageThatEndsWithANameThatIsNoUTF8", oddPages},
}

const roleKind = "roles.rbac.authorization.k8s.io"

// roles is a snapshot of Roles in some form.
type roles[T any] struct {
	Roles   []*T
	Invalid []kates.Invalid
}

// nameOnly is a struct of the program's own.
type nameOnly struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
}

// shownRoles is a watch of Roles, whatever their form.
type shownRoles struct {
	form    string
	await   func(valid []string, invalid ...string)
	settled func() (valid, invalid []string)
}

func watchRoles[T any](t *testing.T, e *env, queries ...kates.Query) shownRoles {
	t.Helper()
	if len(queries) == 0 {
		queries = []kates.Query{{Name: "Roles", Kind: roleKind, Namespace: e.ns}}
	}
	snapshots := watch[roles[T]](e, e.client, queries...)
	var snap roles[T]
	awaitFirst(t, snapshots, &snap)
	named := func() (valid, invalid []string) {
		for _, r := range snap.Roles {
			text, err := json.Marshal(r)
			require.NoError(t, err)
			var one nameOnly
			require.NoError(t, json.Unmarshal(text, &one))
			valid = append(valid, one.Metadata.Name)
		}
		for _, i := range snap.Invalid {
			invalid = append(invalid, i.Object.GetName())
		}
		return valid, invalid
	}
	return shownRoles{
		form: snapshots.Status().Queries[0].Form,
		await: func(wantValid []string, wantInvalid ...string) {
			t.Helper()
			slices.Sort(wantValid)
			right := func() bool {
				valid, invalid := named()
				return slices.Equal(valid, wantValid) && slices.Equal(invalid, wantInvalid)
			}
			if !right() {
				awaitEach(t, snapshots, &snap, strings.Join(wantValid, ", "), right)
			}
		},
		settled: func() (valid, invalid []string) {
			require.NoError(t, e.client.Sync(e.ctx))
			_, err := snapshots.Update(e.ctx, &snap)
			require.NoError(t, err)
			return named()
		},
	}
}

// inEveryForm runs a scenario once for each form of a field.
func inEveryForm(run func(t *testing.T, e *env, watched func(*testing.T, *env) shownRoles)) func(*testing.T, *env) {
	return func(t *testing.T, e *env) {
		for form, watched := range map[string]func(*testing.T, *env) shownRoles{
			"a Go type": func(t *testing.T, e *env) shownRoles { return watchRoles[rbacv1.Role](t, e) },
			"untyped":   func(t *testing.T, e *env) shownRoles { return watchRoles[kates.Unstructured](t, e) },
			"metadata":  func(t *testing.T, e *env) shownRoles { return watchRoles[kates.PartialObjectMetadata](t, e) },
			"a struct":  func(t *testing.T, e *env) shownRoles { return watchRoles[nameOnly](t, e) },
		} {
			t.Run(form, func(t *testing.T) { run(t, newEnv(t, e.backend), watched) })
		}
	}
}

// roleClient writes Roles in protobuf.
func (e *env) roleClient() rest.Interface {
	e.t.Helper()
	config := rest.CopyConfig(e.backend.Config(e.t))
	config.GroupVersion, config.APIPath = &rbacv1.SchemeGroupVersion, "/apis"
	config.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
	c, err := rest.RESTClientFor(config)
	require.NoError(e.t, err)
	return c
}

// createRoles lets another program create Roles, with names of any bytes.
func (e *env) createRoles(names ...string) {
	e.t.Helper()
	for _, name := range names {
		role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"last": lastByte(name)}}}
		require.NoError(e.t, e.roleClient().Post().Namespace(e.ns).Resource("roles").Body(role).Do(e.ctx).Error(), "%q", name)
	}
}

// lastByte is a label by which names can be told apart that JSON makes one.
func lastByte(name string) string {
	const hex = "0123456789abcdef"
	b := name[len(name)-1]
	return string([]byte{hex[b>>4], hex[b&15]})
}

func (e *env) deleteRole(name string) {
	e.t.Helper()
	require.NoError(e.t, e.roleClient().Delete().Namespace(e.ns).Resource("roles").Name(name).Do(e.ctx).Error(), "%q", name)
}

var oddNames = []string{"a\tb", "a\nb", "a\x00b", "a\uFFFDb", "ä b\"", "ok", strings.Repeat("long ", 20)}

func anyCharacters(t *testing.T, e *env, watched func(*testing.T, *env) shownRoles) {
	e.createRoles(oddNames...)
	shown := watched(t, e)
	shown.await(slices.Clone(oddNames))
	e.createRoles("live\r", "live\uFFFD")
	shown.await(append(slices.Clone(oddNames), "live\r", "live\uFFFD"))
	e.deleteRole("live\r")
	e.deleteRole("live\uFFFD")
	shown.await(slices.Clone(oddNames))
}

func noUTF8(t *testing.T, e *env, watched func(*testing.T, *env) shownRoles) {
	e.createRoles("ok", "a\xff")
	shown := watched(t, e)
	// What comes in protobuf has the bytes of the name. JSON has another name.
	inProto := strings.Contains(shown.form, "protobuf") || strings.HasPrefix(shown.form, "metadata")
	if !inProto {
		shown.await([]string{"ok", "a\uFFFD"})
		e.createRoles("b\xff")
		shown.await([]string{"ok", "a\uFFFD", "b\uFFFD"})
		e.deleteRole("a\xff")
		shown.await([]string{"ok", "b\uFFFD"})
		return
	}
	shown.await([]string{"ok"}, "a\xff")
	e.createRoles("a\xfe", "also ok") // a name for itself
	shown.await([]string{"ok", "also ok"}, "a\xfe", "a\xff")
	e.deleteRole("a\xff")
	shown.await([]string{"ok", "also ok"}, "a\xfe")
}

func oneNameOfTwo(t *testing.T, e *env) {
	const one = "a\uFFFD"
	e.createRoles("ok", "a\xff", "a\xfe")
	listed := watchRoles[kates.Unstructured](t, e)
	listed.await([]string{"ok"}, one)
	e.createRoles("a\xfd", "live")
	listed.await([]string{"ok", "live"}, one)
	for _, name := range []string{"a\xff", "a\xfe"} {
		e.deleteRole(name)
	}
	listed.await([]string{"ok", "live", one})

	e.createRoles(one) // JSON has this name for what is there already
	listed.await([]string{"ok", "live"}, one)
	valid, invalid := listed.settled() // a Sync knows both
	assert.Equal(t, []string{"live", "ok"}, valid)
	assert.Equal(t, []string{one}, invalid)
	e.deleteRole("a\xfd")
	valid, invalid = listed.settled()
	assert.Equal(t, []string{one, "live", "ok"}, valid)
	assert.Empty(t, invalid)
	e.deleteRole(one)
	listed.await([]string{"ok", "live"})
}

func oneNameOfTwoStreams(t *testing.T, e *env) {
	const one = "a\uFFFD"
	e.createRoles("ok", "a\xff", "a\xfe")
	shown := watchRoles[kates.Unstructured](t, e, kates.Query{Name: "Roles", Kind: roleKind, Namespace: e.ns, AnyOf: []kates.Selection{
		{LabelSelector: "last=" + lastByte("\xff")}, {LabelSelector: "last=" + lastByte("\xfe")}, {LabelSelector: "last=" + lastByte("ok")},
	}})
	shown.await([]string{"ok"}, one)
	e.deleteRole("a\xff")
	shown.await([]string{"ok", one})
	e.createRoles("a\xff")
	shown.await([]string{"ok"}, one)
	e.deleteRole("a\xfe")
	shown.await([]string{"ok", one})
}

func oddWrites(t *testing.T, e *env) {
	typed, untyped := watchRoles[rbacv1.Role](t, e), watchRoles[kates.Unstructured](t, e)
	role := func(name string) *rbacv1.Role { return &rbacv1.Role{ObjectMeta: e.meta(name)} }
	for _, name := range oddNames {
		require.NoError(t, e.client.Create(e.ctx, role(name), nil), "%q", name)
		var got rbacv1.Role
		require.NoError(t, e.client.Get(e.ctx, role(name), &got), "%q", name)
		assert.Equal(t, name, got.Name)
		got.Labels = map[string]string{"a": "b"}
		require.NoError(t, e.client.Update(e.ctx, &got, nil), "%q", name)
		require.NoError(t, e.client.Apply(e.ctx, role(name), nil), "%q", name)
		require.NoError(t, e.client.Upsert(e.ctx, role(name), role(name), nil), "%q", name)
	}
	typed.await(slices.Clone(oddNames))
	untyped.await(slices.Clone(oddNames))
	var list []*rbacv1.Role
	require.NoError(t, e.client.List(e.ctx, kates.Query{Kind: roleKind, Namespace: e.ns}, &list))
	assert.Len(t, list, len(oddNames))
	for _, name := range oddNames {
		require.NoError(t, e.client.Delete(e.ctx, role(name), nil), "%q", name)
	}
	typed.await(nil)
	untyped.await(nil)
	valid, invalid := untyped.settled()
	assert.Empty(t, append(valid, invalid...))
}

func noUTF8Calls(t *testing.T, e *env) {
	role := &rbacv1.Role{ObjectMeta: e.meta("a\xff")}
	for call, err := range map[string]error{
		"Get":    e.client.Get(e.ctx, role, &rbacv1.Role{}),
		"Create": e.client.Create(e.ctx, role, nil),
		"Update": e.client.Update(e.ctx, role, nil),
		"Apply":  e.client.Apply(e.ctx, role, nil),
		"Patch":  e.client.Patch(e.ctx, role, kates.MergePatchType, []byte("{}"), nil),
		"Upsert": e.client.Upsert(e.ctx, role, role, nil),
		"Delete": e.client.Delete(e.ctx, role, nil),
	} {
		require.ErrorContains(t, err, `"a\xff": it is no UTF-8`, call)
	}
}

// oddPages makes a server write a token that leads elsewhere: the last name of a page is in it, as
// JSON.
func oddPages(t *testing.T, e *env) {
	const pages = 3
	e.createRoles("a\x80", "a\x81", "aä", "b", "c\xff", "c\xfe", "d")
	client := e.newClient(kates.Tuning{PageSize: pages, Lists: kates.PagedLists})
	w := watch[roles[kates.Unstructured]](e, client, kates.Query{Name: "Roles", Kind: roleKind, Namespace: e.ns})
	var snap roles[kates.Unstructured]
	awaitFirst(t, w, &snap)
	assert.Len(t, snap.Roles, 3, "aä, b and d")
	assert.Len(t, snap.Invalid, 2, "of two names each")
}
