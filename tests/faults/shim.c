/* Faults in the system calls of this process: counts, records, fails or kills at the n-th change of a folder.

   faults_begin installs a seccomp filter that turns every system call that changes files into SIGSYS, and a handler
   that carries the call out in its stead. This sees all code alike: Python, C, and Rust that bypasses libc (LD_PRELOAD
   would miss the renames of safetensors). The filter lets pass what comes from `passed_call` below, by its address.
   It cannot be taken back, and a program that is executed by this process inherits the filter without the handler and
   dies: the process that is put to the test must execute none.

   The handler uses raw system calls only and no memory but its stack. x86-64 Linux. */

#define _GNU_SOURCE
#define PATH_MAX_USED 2048 /* longer paths are not watched */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#if !defined(__x86_64__) || !defined(__linux__)
#error "the faults are made by seccomp on x86-64 Linux"
#endif

enum operation { OPEN, WRITE, SYNC, RENAME, LINK, UNLINK, MKDIR, RMDIR, TRUNCATE, OPERATIONS };
enum action { NOTHING, KILL, TORN, ERROR, ERRORS, SHORT, SIGNAL };

/* What fault.py reads back: a header, then both paths without their zero, then the bytes that were written. */
struct record {
    uint32_t operation, path_size, other_size, flags;
    int64_t offset; /* of a write; the new size of a truncation */
    int64_t result; /* what the call returned: bytes, a file, 0, or minus an errno */
    uint64_t data_size;
};

struct change {
    enum operation operation;
    char path[PATH_MAX_USED];
    char other[PATH_MAX_USED]; /* where a rename or a link leads */
    int flags;                 /* of open */
    int64_t offset;
    const struct iovec *parts;
    int part_count;
};

static struct {
    char folder[PATH_MAX_USED];
    char match[256]; /* only paths with this in them count; "" for all */
    uint32_t operations; /* a bit for each that counts */
    enum action action;
    int number; /* an errno or a signal */
    long at;    /* the first one that is hit, from 1 */
    long again; /* for SIGNAL: also hit, so many later; 0 for not */
    int log, told;
} plan;

long faults_count; /* operations that counted so far */

/* Seven arguments: the number and six; the address after `syscall` is what the filter lets pass. */
long passed_call(long number, long a, long b, long c, long d, long e, long f);
__asm__(".text\n"
        ".globl passed_call\n"
        ".type passed_call, @function\n"
        "passed_call:\n"
        "  mov %rdi, %rax\n"
        "  mov %rsi, %rdi\n"
        "  mov %rdx, %rsi\n"
        "  mov %rcx, %rdx\n"
        "  mov %r8, %r10\n"
        "  mov %r9, %r8\n"
        "  mov 8(%rsp), %r9\n"
        "  syscall\n"
        ".globl passed_here\n"
        "passed_here:\n"
        "  ret\n"
        ".size passed_call, .-passed_call\n");
extern const char passed_here[];

#define CALL(number, ...) CALL_(number, __VA_ARGS__, 0, 0, 0, 0, 0)
#define CALL_(number, a, b, c, d, e, f, ...) \
    passed_call(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

static void write_all(int file, const void *bytes, size_t size)
{
    const char *rest = bytes;
    while (size > 0) {
        long done = CALL(SYS_write, file, rest, size);
        if (done <= 0) return;
        rest += done, size -= (size_t)done;
    }
}

static size_t number_text(char *text, long number)
{
    char digits[24];
    size_t size = 0, length = 0;
    do digits[size++] = (char)('0' + number % 10); while (number /= 10);
    while (size > 0) text[length++] = digits[--size];
    text[length] = 0;
    return length;
}

/* The path that a file descriptor stands for; 0 if there is none. */
static int path_of_file(int file, char *path)
{
    char link[64] = "/proc/self/fd/";
    number_text(link + strlen(link), file);
    long size = CALL(SYS_readlink, link, path, PATH_MAX_USED - 1);
    if (size <= 0) return 0;
    path[size] = 0;
    return path[0] == '/';
}

/* `given`, as a call with this folder's descriptor means it, as an absolute path; 0 if it is too long. */
static int path_at(int folder, const char *given, char *path)
{
    size_t size = 0;
    if (given[0] != '/') {
        if (folder == AT_FDCWD) {
            if (CALL(SYS_getcwd, path, PATH_MAX_USED) <= 0) return 0;
        } else if (!path_of_file(folder, path)) {
            return 0;
        }
        size = strlen(path);
        path[size++] = '/';
    }
    if (size + strlen(given) >= PATH_MAX_USED) return 0;
    strcpy(path + size, given);
    size = strlen(path);
    while (size > 1 && path[size - 1] == '/') path[--size] = 0;
    return 1;
}

static int is_inside(const char *path)
{
    size_t size = strlen(plan.folder);
    return strncmp(path, plan.folder, size) == 0 && path[size] == '/';
}

static void record(const struct change *change, int64_t result)
{
    int64_t written = change->operation == WRITE && result > 0 ? result : 0;
    struct record head = {.operation = change->operation,
                          .path_size = (uint32_t)strlen(change->path),
                          .other_size = (uint32_t)strlen(change->other),
                          .flags = (uint32_t)change->flags,
                          .offset = change->offset,
                          .result = result,
                          .data_size = (uint64_t)written};
    if (plan.log < 0) return;
    write_all(plan.log, &head, sizeof head);
    write_all(plan.log, change->path, head.path_size);
    write_all(plan.log, change->other, head.other_size);
    for (int part = 0; part < change->part_count && written > 0; part++) {
        size_t size = change->parts[part].iov_len;
        if ((int64_t)size > written) size = (size_t)written;
        write_all(plan.log, change->parts[part].iov_base, size);
        written -= (int64_t)size;
    }
}

static void tell(const struct change *change)
{
    static const char *const names[] = {"open", "write", "sync", "rename", "link", "unlink", "mkdir", "rmdir",
                                        "truncate"};
    if (plan.told < 0) return;
    write_all(plan.told, names[change->operation], strlen(names[change->operation]));
    write_all(plan.told, " ", 1);
    write_all(plan.told, change->path, strlen(change->path));
    write_all(plan.told, "\n", 1);
}

/* The first half of what is to be written: what a full disk or a power cut lets through. */
static long write_half(int file, const struct change *change)
{
    const struct iovec *first = &change->parts[0];
    size_t size = first->iov_len > 1 ? first->iov_len / 2 : first->iov_len;
    return CALL(SYS_write, file, first->iov_base, size);
}

static void send_to_itself(int number)
{
    CALL(SYS_kill, CALL(SYS_getpid, 0), number);
}

/* What the call returns: the system's answer, or the fault that is planned for it. */
static long carried_out(long number, const long *given, const struct change *change)
{
    int is_counted = (plan.operations >> change->operation & 1) && strstr(change->path, plan.match) != NULL;
    if (!is_counted && change->other[0] && (plan.operations >> change->operation & 1))
        is_counted = strstr(change->other, plan.match) != NULL;
    long count = is_counted ? ++faults_count : 0;
    int is_hit = is_counted && (count == plan.at || (plan.again && count == plan.at + plan.again));
    int is_after = is_counted && count >= plan.at && plan.at > 0;
    int is_write = change->operation == WRITE && number == SYS_write;
    long result;
    if (is_hit && plan.action != NOTHING) tell(change);
    if (is_hit && plan.action == KILL) send_to_itself(SIGKILL);
    if (is_hit && plan.action == TORN) {
        if (is_write) write_half((int)given[0], change);
        send_to_itself(SIGKILL);
    }
    if (is_hit && plan.action == ERROR) return -plan.number;
    if (is_after && plan.action == ERRORS) return -plan.number;
    if (is_hit && plan.action == SIGNAL) send_to_itself(plan.number);
    if (is_hit && plan.action == SHORT && is_write)
        result = write_half((int)given[0], change);
    else
        result = CALL(number, given[0], given[1], given[2], given[3], given[4], given[5]);
    record(change, result);
    return result;
}

/* The change of the folder that a call asks for; 0 where it changes nothing there. */
static int is_change(long number, const long *given, struct change *change, struct iovec *single)
{
    struct stat about;
    const char *path = NULL, *other = NULL;
    int folder = AT_FDCWD, other_folder = AT_FDCWD, file = -1;
    change->other[0] = 0, change->flags = 0, change->offset = 0, change->parts = NULL, change->part_count = 0;
    switch (number) {
    case SYS_open: change->operation = OPEN, path = (const char *)given[0], change->flags = (int)given[1]; break;
    case SYS_creat:
        change->operation = OPEN, path = (const char *)given[0], change->flags = O_CREAT | O_TRUNC | O_WRONLY;
        break;
    case SYS_openat:
        change->operation = OPEN, folder = (int)given[0], path = (const char *)given[1];
        change->flags = (int)given[2];
        break;
    case SYS_write:
    case SYS_pwrite64:
        single->iov_base = (void *)given[1], single->iov_len = (size_t)given[2];
        change->operation = WRITE, file = (int)given[0], change->parts = single, change->part_count = 1;
        break;
    case SYS_writev:
    case SYS_pwritev:
        change->operation = WRITE, file = (int)given[0];
        change->parts = (const struct iovec *)given[1], change->part_count = (int)given[2];
        break;
    case SYS_fsync:
    case SYS_fdatasync: change->operation = SYNC, file = (int)given[0]; break;
    case SYS_ftruncate: change->operation = TRUNCATE, file = (int)given[0], change->offset = given[1]; break;
    case SYS_truncate:
        change->operation = TRUNCATE, path = (const char *)given[0], change->offset = given[1];
        break;
    case SYS_rename:
        change->operation = RENAME, path = (const char *)given[0], other = (const char *)given[1];
        break;
    case SYS_renameat:
    case SYS_renameat2:
        change->operation = RENAME, folder = (int)given[0], path = (const char *)given[1];
        other_folder = (int)given[2], other = (const char *)given[3];
        break;
    case SYS_link: change->operation = LINK, path = (const char *)given[0], other = (const char *)given[1]; break;
    case SYS_linkat:
        change->operation = LINK, folder = (int)given[0], path = (const char *)given[1];
        other_folder = (int)given[2], other = (const char *)given[3];
        break;
    case SYS_unlink: change->operation = UNLINK, path = (const char *)given[0]; break;
    case SYS_unlinkat:
        change->operation = given[2] & AT_REMOVEDIR ? RMDIR : UNLINK;
        folder = (int)given[0], path = (const char *)given[1];
        break;
    case SYS_mkdir: change->operation = MKDIR, path = (const char *)given[0]; break;
    case SYS_mkdirat: change->operation = MKDIR, folder = (int)given[0], path = (const char *)given[1]; break;
    case SYS_rmdir: change->operation = RMDIR, path = (const char *)given[0]; break;
    default: return 0;
    }
    if (file >= 0 ? !path_of_file(file, change->path) : !path_at(folder, path, change->path)) return 0;
    if (other != NULL && !path_at(other_folder, other, change->other)) return 0;
    if (change->operation == WRITE) {
        if (number == SYS_pwrite64 || number == SYS_pwritev)
            change->offset = given[3];
        else if (CALL(SYS_fcntl, file, F_GETFL) & O_APPEND)
            change->offset = CALL(SYS_fstat, file, &about) == 0 ? about.st_size : 0;
        else
            change->offset = CALL(SYS_lseek, file, 0, SEEK_CUR);
    }
    /* The folder itself counts where it is made or synced; what it lies in does not. */
    return is_inside(change->path) || (change->other[0] && is_inside(change->other)) ||
           ((change->operation == SYNC || change->operation == MKDIR) && strcmp(change->path, plan.folder) == 0);
}

static void trapped(int signal_number, siginfo_t *about, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    long given[6] = {registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
                     registers[REG_R10], registers[REG_R8],  registers[REG_R9]};
    long number = registers[REG_RAX];
    struct change change;
    struct iovec single;
    (void)signal_number, (void)about;
    if (is_change(number, given, &change, &single))
        registers[REG_RAX] = carried_out(number, given, &change);
    else
        registers[REG_RAX] = CALL(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}

/* Begin. `log` takes a record of each change, `told` a line for each that is hit; "" for none. 0, or an errno. */
int faults_begin(const char *folder, const char *match, uint32_t operations, int action, int number, long at,
                 long again, const char *log, const char *told)
{
    static const int traps[] = {SYS_creat,  SYS_write,    SYS_pwrite64,  SYS_writev, SYS_pwritev,  SYS_fsync,
                                SYS_fdatasync, SYS_ftruncate, SYS_truncate, SYS_rename, SYS_renameat, SYS_renameat2,
                                SYS_link,   SYS_linkat,   SYS_unlink,    SYS_unlinkat, SYS_mkdir,  SYS_mkdirat,
                                SYS_rmdir};
    enum { COUNT = sizeof traps / sizeof traps[0] };
    const uint64_t pass = (uint64_t)(uintptr_t)passed_here;
    const uint32_t changing = O_CREAT | O_TRUNC | O_WRONLY | O_RDWR;
    struct sock_filter filter[2 * COUNT + 24];
    unsigned short size = 0;
    struct sigaction handler;

    if (strlen(folder) >= PATH_MAX_USED || strlen(match) >= sizeof plan.match) return ENAMETOOLONG;
    strcpy(plan.folder, folder);
    strcpy(plan.match, match);
    plan.operations = operations, plan.action = (enum action)action, plan.number = number;
    plan.at = at, plan.again = again;
    plan.log = *log ? open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    plan.told = *told ? open(told, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    faults_count = 0;

    memset(&handler, 0, sizeof handler);
    handler.sa_sigaction = trapped;
    handler.sa_flags = SA_SIGINFO | SA_NODEFER;
    if (sigaction(SIGSYS, &handler, NULL) != 0) return errno;

#define ADD(...) filter[size++] = (struct sock_filter)__VA_ARGS__
#define LOAD(field) ADD(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field)))
#define PASS ADD(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW))
#define TRAP ADD(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP))
    LOAD(arch);
    ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0));
    PASS;
    LOAD(instruction_pointer);
    ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)pass, 0, 3));
    ADD(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer) + 4));
    ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(pass >> 32), 0, 1));
    PASS;
    LOAD(nr);
    for (int each = 0; each < COUNT; each++) {
        ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)traps[each], 0, 1));
        TRAP;
    }
    /* Opening changes nothing unless it creates, cuts off or lets write. */
    ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_open, 0, 4));
    LOAD(args[1]);
    ADD(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, changing, 0, 1));
    TRAP;
    PASS;
    ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3));
    LOAD(args[2]);
    ADD(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, changing, 0, 1));
    TRAP;
    PASS;

    struct sock_fprog program = {.len = size, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0) return errno;
    return 0;
}
