/* A test module that imitates other modules and other servers. Its first argument is its role; without one it does
 * nothing:
 *
 *   pin FILE                  keeps the library FILE in memory, as on systems where dlclose() unmaps nothing
 *   hold NAME                 registers a command of this name
 *   host FILE [odd] [valkey] [knows OPTIONS] [lacks FUNCTION]... [loses FUNCTION] [-- ARGUMENT...]
 *                             loads the module FILE in place of the server, and passes calls on:
 *     odd                     memory blocks are at odd multiples of 8, as if malloc had no malloc_usable_size()
 *     valkey                  the server also has the API's functions under Valkey's names
 *     knows OPTIONS           the server knows these module options (a bit set)
 *     lacks FUNCTION          the server lacks this function
 *     loses FUNCTION          the module panics if it calls this function after loading its options
 *     HOST.BREAK FUNCTION     removes the function, so that the module panics when it calls it
 *     HOST.MEND               restores all functions
 *     HOST.SENT               the number of events that the module has sent
 *     HOST.OPEN               the number of events that it sent while a key was open
 *     HOST.DELETE EVENT       the key of each such event is deleted, as by a module that subscribes to events
 *     HOST.OPTIONS            the options that the module has set
 *     HOST.USE 1              as during a save: keys cannot be opened for writing, until HOST.USE 0
 *
 * The names of the server's API are declared here, so no header of a server is needed.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef struct Context { int (*get_api)(const char *, void *); } Context; /* Only its first word is used. */
typedef struct String String;
typedef int Command(Context *, String **, int);

enum { OK = 0, ERR = 1, FUNCTIONS = 1024 };

static int (*server_api)(const char *, void *);

/* Returns a function of the server's API by name. */
static void *function(const char *name) {
    void *found = NULL;
    server_api(name, &found);
    return found;
}

static const char *text(String *string) {
    const char *(*string_ptr_len)(String *, size_t *) = function("RedisModule_StringPtrLen");
    return string_ptr_len(string, NULL);
}

static int reply(Context *context, long long number) {
    int (*reply_with)(Context *, long long) = function("RedisModule_ReplyWithLongLong");
    return reply_with(context, number);
}

static int command(Context *context, const char *name, Command *entry) {
    int (*create)(Context *, const char *, Command *, const char *, int, int, int) =
        function("RedisModule_CreateCommand");
    return create(context, name, entry, "readonly", 0, 0, 0);
}

/* The functions that the hosted module has requested, and where it stores them. */
static struct { const char *name; void **place; void *function; } asked[FUNCTIONS];
static int num_asked;

static const char *lacking[FUNCTIONS];
static int num_lacking;

/* Keys. */

static int keys_open, events, events_with_open_keys;
static void *(*server_open_key)(Context *, String *, int);
static void (*server_close_key)(void *);
static int (*server_notify)(Context *, int, const char *, String *);

/* Whether keys are in use, as while Valkey 9.2 saves without a fork. */
static int keys_in_use;
enum { WRITE = 1 << 1 };

static void *open_key(Context *context, String *name, int mode) {
    if (keys_in_use && mode & WRITE) return NULL;
    void *key = server_open_key(context, name, mode);
    keys_open += key != NULL;
    return key;
}

static void close_key(void *key) {
    keys_open -= key != NULL;
    server_close_key(key);
}

/* The event whose key is deleted; NULL for none. */
static const char *deleted_at;

static int notify(Context *context, int type, const char *event, String *key) {
    events++;
    events_with_open_keys += keys_open > 0;
    int sent = server_notify(context, type, event, key);
    if (deleted_at && !strcmp(event, deleted_at)) {
        void *(*call)(Context *, const char *, const char *, ...) = function("RedisModule_Call");
        void (*free_reply)(void *) = function("RedisModule_FreeCallReply");
        free_reply(call(context, "DEL", "!s", key));
    }
    return sent;
}

/* Loading. */

static const char *lost;
static int (*server_load_configs)(Context *);
static void take_away(const char *name);

static int load_configs(Context *context) {
    if (lost) take_away(lost);
    return server_load_configs(context);
}

/* Options of modules. */

enum { KNOWN_TO_ALL = (1 << 3) - 1 };
static int is_valkey, options_known, options_set;
static void (*server_set_options)(Context *, int);

static int known_options(void) { return options_known; }

static void set_options(Context *context, int options) {
    options_set = options;
    server_set_options(context, options_known ? options & KNOWN_TO_ALL : options);
}

/* Memory. */

enum { SHIFT = 8 };
static void *(*server_alloc)(size_t), *(*server_calloc)(size_t, size_t);
static void (*server_free)(void *);
static void *(*server_defrag)(void *, void *);
static char *(*server_load)(void *, size_t *);

static void *shifted(void *block) { return block ? (char *)block + SHIFT : NULL; }
static void *unshifted(void *block) { return block ? (char *)block - SHIFT : NULL; }

static void *odd_alloc(size_t size) { return shifted(server_alloc(size + SHIFT)); }
static void *odd_calloc(size_t count, size_t size) { return shifted(server_calloc(1, count * size + SHIFT)); }
static void odd_free(void *block) { server_free(unshifted(block)); }
static size_t odd_size(void *block) { (void)block; return 0; }
static void *odd_defrag(void *context, void *block) { return shifted(server_defrag(context, unshifted(block))); }

/* The module frees the value that it has loaded. */
static char *odd_load(void *io, size_t *length) {
    char *loaded = server_load(io, length);
    if (!loaded) return NULL;
    char *copy = memcpy(odd_alloc(*length), loaded, *length);
    server_free(loaded);
    return copy;
}

static const struct { const char *name; void *ours; void **servers; } exchanged[] = {
    {"RedisModule_OpenKey", open_key, (void **)&server_open_key},
    {"RedisModule_CloseKey", close_key, (void **)&server_close_key},
    {"RedisModule_NotifyKeyspaceEvent", notify, (void **)&server_notify},
    {"RedisModule_LoadConfigs", load_configs, (void **)&server_load_configs},
    {"RedisModule_SetModuleOptions", set_options, (void **)&server_set_options},
    /* From here on for odd memory only. */
    {"RedisModule_Alloc", odd_alloc, (void **)&server_alloc},
    {"RedisModule_Calloc", odd_calloc, (void **)&server_calloc},
    {"RedisModule_Free", odd_free, (void **)&server_free},
    {"RedisModule_TryAlloc", odd_alloc, NULL},
    {"RedisModule_TryCalloc", odd_calloc, NULL},
    {"RedisModule_MallocSize", odd_size, NULL},
    {"RedisModule_DefragAlloc", odd_defrag, (void **)&server_defrag},
    {"RedisModule_LoadStringBuffer", odd_load, (void **)&server_load},
};
enum { ALWAYS = 5, EXCHANGED = sizeof exchanged / sizeof *exchanged };
static int num_exchanged = ALWAYS;

/* What the hosted module takes for the server's look-up of functions. */
static int hosted_api(const char *name, void *place) {
    char redis_name[128] = "Redis";
    if (is_valkey && !strncmp(name, "ValkeyModule_", 13)) strncpy(redis_name + 5, name + 6, sizeof redis_name - 6);
    void *found = function(redis_name[5] ? redis_name : name);
    if (options_known && !strcmp(name, "RedisModule_GetModuleOptionsAll")) found = known_options;
    for (int i = 0; i < num_lacking; i++)
        if (!strcmp(name, lacking[i])) found = NULL;
    *(void **)place = NULL;
    if (!found) return ERR;
    for (int i = 0; i < num_exchanged; i++)
        if (!strcmp(name, exchanged[i].name)) found = exchanged[i].ours;
    *(void **)place = found;
    if (num_asked < FUNCTIONS) {
        asked[num_asked].name = name;
        asked[num_asked].place = place;
        asked[num_asked++].function = found;
    }
    return OK;
}

static void take_away(const char *name) {
    for (int i = 0; i < num_asked; i++)
        if (!strcmp(name, asked[i].name)) *asked[i].place = NULL;
}

static int host_break(Context *context, String **argv, int argc) {
    if (argc > 1) take_away(text(argv[1]));
    return reply(context, argc - 1);
}

static int host_mend(Context *context, String **argv, int argc) {
    (void)argv, (void)argc;
    for (int i = 0; i < num_asked; i++) *asked[i].place = asked[i].function;
    return reply(context, num_asked);
}

static int host_sent(Context *context, String **argv, int argc) {
    (void)argv, (void)argc;
    return reply(context, events);
}

static int host_open(Context *context, String **argv, int argc) {
    (void)argv, (void)argc;
    return reply(context, events_with_open_keys);
}

static int host_delete(Context *context, String **argv, int argc) {
    deleted_at = argc > 1 ? strdup(text(argv[1])) : NULL;
    return reply(context, deleted_at != NULL);
}

static int host_options(Context *context, String **argv, int argc) {
    (void)argv, (void)argc;
    return reply(context, options_set);
}

static int host_use(Context *context, String **argv, int argc) {
    keys_in_use = argc > 1 && atoi(text(argv[1]));
    return reply(context, keys_in_use);
}

static int host(Context *context, String **argv, int argc) {
    int at = 2;
    for (; at < argc && strcmp(text(argv[at]), "--"); at++) {
        if (!strcmp(text(argv[at]), "odd")) num_exchanged = EXCHANGED;
        else if (!strcmp(text(argv[at]), "valkey")) is_valkey = 1;
        else if (!strcmp(text(argv[at]), "knows") && at + 1 < argc) options_known = atoi(text(argv[++at]));
        else if (!strcmp(text(argv[at]), "loses") && at + 1 < argc) lost = strdup(text(argv[++at]));
        else if (!strcmp(text(argv[at]), "lacks") && at + 1 < argc) lacking[num_lacking++] = strdup(text(argv[++at]));
        else return ERR;
    }
    at += at < argc;
    for (int i = 0; i < EXCHANGED; i++)
        if (exchanged[i].servers) *exchanged[i].servers = function(exchanged[i].name);
    void *library = dlopen(text(argv[1]), RTLD_NOW | RTLD_LOCAL);
    Command *load = library ? (Command *)dlsym(library, "RedisModule_OnLoad") : NULL;
    if (!load) return ERR;
    context->get_api = hosted_api;
    int loaded = load(context, argv + at, argc - at);
    context->get_api = server_api;
    if (loaded != OK) return dlclose(library), ERR;
    command(context, "host.break", host_break);
    command(context, "host.mend", host_mend);
    command(context, "host.sent", host_sent);
    command(context, "host.delete", host_delete);
    command(context, "host.options", host_options);
    command(context, "host.use", host_use);
    return command(context, "host.open", host_open);
}

static int held(Context *context, String **argv, int argc) {
    (void)argv, (void)argc;
    return reply(context, 1);
}

int RedisModule_OnLoad(Context *context, String **argv, int argc) {
    server_api = context->get_api;
    const char *role = argc ? text(argv[0]) : "idle";
    if (argc == 1) return ERR;
    if (!strcmp(role, "host")) return host(context, argv, argc);
    void (*attributes)(Context *, const char *, int, int) = function("RedisModule_SetModuleAttribs");
    attributes(context, role, 1, 1);
    if (!argc) return OK;
    if (!strcmp(role, "hold")) return command(context, text(argv[1]), held);
    if (!strcmp(role, "pin")) return dlopen(text(argv[1]), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) ? OK : ERR;
    return ERR;
}
