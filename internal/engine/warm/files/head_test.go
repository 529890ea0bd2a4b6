package files

import (
	"encoding/json"
	"reflect"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
)

func TestEachPartOfAnIdentityTellsFilesApart(t *testing.T) {
	assert.Empty(t, head.Identity.Differs(head.Identity))
	for what, change := range map[string]func(*Identity){
		"another format":                         func(i *Identity) { i.Format++ },
		"another name or address":                func(i *Identity) { i.Member = "x" },
		"another cluster":                        func(i *Identity) { i.Cluster = "x" },
		"another version of the server":          func(i *Identity) { i.Server = "x" },
		"another schema of the API":              func(i *Identity) { i.Schema = "x" },
		"another query":                          func(i *Identity) { i.Shard = "x" },
		"another version of the program's types": func(i *Identity) { i.Packing = "x" },
	} {
		other := head.Identity
		change(&other)
		assert.Equal(t, what, head.Identity.Differs(other))
		renamed := head.Identity.Name() != other.Name()
		assert.Equal(t, what == "another name or address" || what == "another cluster" || what == "another query", renamed, what)
	}
}

func TestEachPartOfAQueryHasFilesOfItsOwn(t *testing.T) {
	fields := reflect.TypeFor[Query]()
	for i := range fields.NumField() {
		other := head.Identity
		reflect.ValueOf(&other.Query).Elem().Field(i).SetString("other")
		assert.Equal(t, "another query", head.Identity.Differs(other), fields.Field(i).Name)
		assert.NotEqual(t, head.Identity.Name(), other.Name(), fields.Field(i).Name)
	}
}

func TestANameOfFilesHasNothingThatAFileSystemMinds(t *testing.T) {
	odd := head.Identity
	odd.Resource, odd.Namespace = "x.example.com/v1/../../etc/passwd", "../.."
	for _, name := range []string{head.Identity.Name(), odd.Name()} {
		assert.Regexp(t, regexp.MustCompile(`^[a-z0-9]+-[0-9a-f]{24}$`), name)
	}
	assert.NotEqual(t, head.Identity.Name(), odd.Name())
}

type lite struct {
	Name string `json:"name"`
}

type liteTagged struct {
	Name string `json:"title"`
}

type coded struct{ Name string }

func (coded) MarshalJSON() ([]byte, error) { return json.Marshal("x") }

type nested struct{ All []*coded }

type recursive struct{ Next *recursive }

func TestTypesThatArePackedOtherwiseHaveOtherNames(t *testing.T) {
	seen := make(map[string]reflect.Type)
	for _, typ := range []reflect.Type{
		reflect.TypeFor[lite](), reflect.TypeFor[liteTagged](), reflect.TypeFor[coded](), reflect.TypeFor[nested](),
		reflect.TypeFor[recursive](), reflect.TypeFor[corev1.Pod](), reflect.TypeFor[corev1.ConfigMap](),
		reflect.TypeFor[[2]int](), reflect.TypeFor[[3]int](), reflect.TypeFor[map[string]int](), reflect.TypeFor[map[string]bool](),
	} {
		name := TypeOf(typ)
		assert.Equal(t, name, TypeOf(typ))
		assert.Nil(t, seen[name], "%s", typ)
		seen[name] = typ
	}
}

// These types have one name, as one type has in two versions of a program.

func fieldsV1() reflect.Type {
	type part struct {
		N int `json:"n"`
	}
	type fields struct {
		Name string            `json:"name"`
		Part *part             `json:"part"`
		All  []part            `json:"all"`
		Map  map[string]string `json:"map"`
	}
	return reflect.TypeFor[fields]()
}

func fieldsOfAnotherTag() reflect.Type {
	type part struct {
		N int `json:"n"`
	}
	type fields struct {
		Name string            `json:"title"`
		Part *part             `json:"part"`
		All  []part            `json:"all"`
		Map  map[string]string `json:"map"`
	}
	return reflect.TypeFor[fields]()
}

func fieldsOfAnotherTagWithin() reflect.Type {
	type part struct {
		N int `json:"m"`
	}
	type fields struct {
		Name string            `json:"name"`
		Part *part             `json:"part"`
		All  []part            `json:"all"`
		Map  map[string]string `json:"map"`
	}
	return reflect.TypeFor[fields]()
}

func fieldsOfAnotherType() reflect.Type {
	type part struct {
		N int32 `json:"n"`
	}
	type fields struct {
		Name string            `json:"name"`
		Part *part             `json:"part"`
		All  []part            `json:"all"`
		Map  map[string]string `json:"map"`
	}
	return reflect.TypeFor[fields]()
}

func fieldsOfAnotherName() reflect.Type {
	type part struct {
		N int `json:"n"`
	}
	type fields struct {
		Name string            `json:"name"`
		Some *part             `json:"part"`
		All  []part            `json:"all"`
		Map  map[string]string `json:"map"`
	}
	return reflect.TypeFor[fields]()
}

func fieldsOfAnotherMap() reflect.Type {
	type part struct {
		N int `json:"n"`
	}
	type fields struct {
		Name string         `json:"name"`
		Part *part          `json:"part"`
		All  []part         `json:"all"`
		Map  map[string]int `json:"map"`
	}
	return reflect.TypeFor[fields]()
}

func fieldsOfAnotherKey() reflect.Type {
	type part struct {
		N int `json:"n"`
	}
	type fields struct {
		Name string         `json:"name"`
		Part *part          `json:"part"`
		All  []part         `json:"all"`
		Map  map[int]string `json:"map"`
	}
	return reflect.TypeFor[fields]()
}

func fieldsThatAreFewer() reflect.Type {
	type part struct {
		N int `json:"n"`
	}
	type fields struct {
		Name string `json:"name"`
		Part *part  `json:"part"`
		All  []part `json:"all"`
	}
	return reflect.TypeFor[fields]()
}

func TestATypeThatIsChangedHasAnotherNameInFiles(t *testing.T) {
	was := TypeOf(fieldsV1())
	assert.Equal(t, was, TypeOf(fieldsV1()))
	for what, of := range map[string]func() reflect.Type{
		"a tag": fieldsOfAnotherTag, "a tag of a part": fieldsOfAnotherTagWithin, "a type of a part": fieldsOfAnotherType,
		"a name": fieldsOfAnotherName, "values of a map": fieldsOfAnotherMap, "keys of a map": fieldsOfAnotherKey, "a field less": fieldsThatAreFewer,
	} {
		assert.Equal(t, fieldsV1().String(), of().String(), "the name alone does not tell")
		assert.NotEqual(t, was, TypeOf(of()), what)
	}
}

func TestOnlyTypesWithCodeOfTheirOwnDependOnTheProgram(t *testing.T) {
	own := func(t reflect.Type) bool {
		d := &describer{seen: make(map[reflect.Type]int)}
		d.describe(t)
		return d.own
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[lite](), reflect.TypeFor[corev1.Pod](), reflect.TypeFor[recursive]()} {
		assert.False(t, own(typ), "%s", typ)
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[coded](), reflect.TypeFor[nested](), reflect.TypeFor[struct{ E error }]()} {
		assert.True(t, own(typ), "%s", typ)
	}
	assert.NotEmpty(t, program())
}
