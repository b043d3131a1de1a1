//! Picture memory that a software decoder keeps using as a reference while we show it: no copy.
//!
//! `avdec_h264` keeps its reference pictures mapped for writing for as long as it may predict from them.
//! GStreamer gives the picture a new buffer on its way out, and because a memory that is mapped for writing
//! cannot be shared, it *copies* the samples: a tenth of all processor time, measured at 1080p and at 4K. The
//! memory of this pool answers a request for a copy with a read-only view of the same samples instead. That is
//! sound because a decoder never writes a frame it has put out; [`Allocation`](crate::plan::decode::Allocation)
//! says for which streams that is relied upon.

use std::alloc::Layout;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, PoisonError};

use gst::ffi;
use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;

/// The type of memory these pools hand out, as GStreamer names it.
pub(super) const MEMORY_TYPE: &str = "CrossdeskLentMemory";
const MEMORY_TYPE_C: &std::ffi::CStr = c"CrossdeskLentMemory";

/// Most blocks kept for the next picture. One goes back while the next is taken; at 4K each is 12 MB.
const MAX_SPARE: usize = 2;

/// Zeroed bytes of one allocation, owned.
///
/// On Unix straight from the kernel: the C library keeps blocks of this size in its heaps once one was freed, and a
/// busy minute then cost a hundred megabytes for ever.
struct Bytes {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: `Bytes` owns its allocation like a `Box<[u8]>`, which is both.
unsafe impl Send for Bytes {}
// SAFETY: see above; all access goes through GStreamer's map and lock rules.
unsafe impl Sync for Bytes {}

#[cfg(unix)]
impl Bytes {
    fn new(layout: Layout) -> Option<Self> {
        use rustix::mm::{MapFlags, ProtFlags};
        // Pages are aligned to 4 KiB at least.
        if layout.size() == 0 || layout.align() > 4096 {
            return None;
        }
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: without an address wished for, nothing that exists is touched.
        let start = unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), layout.size(), access, flags) };
        let start = NonNull::new(start.ok()?.cast())?;
        Some(Self { start, layout })
    }
}

#[cfg(unix)]
impl Drop for Bytes {
    fn drop(&mut self) {
        // SAFETY: mapped in `new` with this size, and nobody has the bytes any more.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.layout.size()) };
    }
}

#[cfg(not(unix))]
impl Bytes {
    fn new(layout: Layout) -> Option<Self> {
        if layout.size() == 0 {
            return None;
        }
        // SAFETY: the layout is not empty. Zeroed, so that no reader meets uninitialised bytes.
        let start = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) })?;
        Some(Self { start, layout })
    }
}

#[cfg(not(unix))]
impl Drop for Bytes {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, and freed once.
        unsafe { std::alloc::dealloc(self.start.as_ptr(), self.layout) };
    }
}

type Spares = Arc<Mutex<Vec<Bytes>>>;

/// The samples of one picture; they return to the spares when neither decoder nor viewer has them any more.
struct Block {
    bytes: Option<Bytes>,
    spares: Spares,
}

impl Block {
    fn take(spares: &Spares, layout: Layout) -> Option<Self> {
        let spare = {
            let mut spares = spares.lock().unwrap_or_else(PoisonError::into_inner);
            let fits = spares.iter().position(|bytes| bytes.layout == layout);
            fits.map(|index| spares.swap_remove(index))
        };
        let bytes = match spare {
            Some(bytes) => bytes,
            None => Bytes::new(layout)?,
        };
        Some(Self {
            bytes: Some(bytes),
            spares: spares.clone(),
        })
    }

    fn start(&self) -> *mut u8 {
        self.bytes
            .as_ref()
            .map_or(ptr::null_mut(), |bytes| bytes.start.as_ptr())
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let mut spares = self.spares.lock().unwrap_or_else(PoisonError::into_inner);
        if spares.len() >= MAX_SPARE {
            // The oldest: after a change of size they are those of the old one.
            spares.remove(0);
        }
        spares.extend(self.bytes.take());
    }
}

/// A `GstMemory` over a block.
#[repr(C)]
struct Memory {
    /// First, so that a pointer to this is a pointer to that; initialised by [`Memory::leak`].
    base: MaybeUninit<ffi::GstMemory>,
    block: Arc<Block>,
}

/// What `gst_memory_init` needs beside the block.
struct Extent {
    flags: ffi::GstMemoryFlags,
    maxsize: usize,
    align: usize,
    offset: usize,
    size: usize,
}

impl Memory {
    /// A memory over `block` that GStreamer owns from here on and gives back to [`imp::Lender::free`].
    ///
    /// # Safety
    /// `allocator` points to a live [`Lender`].
    unsafe fn leak(
        block: Arc<Block>,
        allocator: *mut ffi::GstAllocator,
        extent: &Extent,
    ) -> *mut ffi::GstMemory {
        let memory = Box::into_raw(Box::new(Self {
            base: MaybeUninit::uninit(),
            block,
        }))
        .cast::<ffi::GstMemory>();
        // SAFETY: `memory` points to the space for a `GstMemory`; the allocator lives by the caller's word.
        unsafe {
            ffi::gst_memory_init(
                memory,
                extent.flags,
                allocator,
                ptr::null_mut(),
                extent.maxsize,
                extent.align,
                extent.offset,
                extent.size,
            );
        }
        memory
    }
}

/// GStreamer asks where the bytes are.
///
/// # Safety
/// `memory` was made by [`Memory::leak`] and is alive.
unsafe extern "C" fn map(memory: *mut ffi::GstMemory, _: usize, _: ffi::GstMapFlags) -> glib::ffi::gpointer {
    // SAFETY: by the contract above it is ours. GStreamer adds the offset.
    unsafe { (*memory.cast::<Memory>()).block.start().cast() }
}

unsafe extern "C" fn unmap(_: *mut ffi::GstMemory) {}

/// GStreamer wants a copy, of all or of a part: it gets a read-only view of the same bytes.
///
/// # Safety
/// `memory` was made by [`Memory::leak`] and is alive.
unsafe extern "C" fn view(memory: *mut ffi::GstMemory, offset: isize, size: isize) -> *mut ffi::GstMemory {
    // SAFETY: by the contract above it is ours.
    let (base, block) = unsafe { (&*memory, (*memory.cast::<Memory>()).block.clone()) };
    // The whole rest is meant by -1; the caller has checked that the part lies inside.
    let start = base.offset.wrapping_add_signed(offset);
    let left = base.size.wrapping_add_signed(offset.wrapping_neg());
    let extent = Extent {
        flags: ffi::GST_MEMORY_FLAG_READONLY | ffi::GST_MEMORY_FLAG_NO_SHARE,
        maxsize: base.maxsize,
        align: base.align,
        offset: start,
        size: usize::try_from(size).unwrap_or(left),
    };
    // SAFETY: the allocator of a live memory is alive.
    unsafe { Memory::leak(block, base.allocator, &extent) }
}

mod imp {
    use super::*;

    #[derive(Default)]
    pub struct Lender {
        spares: Spares,
    }

    #[glib::object_subclass]
    impl ObjectSubclass for Lender {
        const NAME: &'static str = "CrossdeskLender";
        type Type = super::Lender;
        type ParentType = gst::Allocator;

        fn instance_init(object: &glib::subclass::InitializingObject<Self>) {
            let allocator = object.as_ptr().cast::<ffi::GstAllocator>();
            // SAFETY: the instance begins with its parent class's, which GStreamer has initialised; these fields
            // are the documented way to say how its memory behaves.
            unsafe {
                (*allocator).mem_type = MEMORY_TYPE_C.as_ptr();
                (*allocator).mem_map = Some(map);
                (*allocator).mem_unmap = Some(unmap);
                (*allocator).mem_copy = Some(view);
            }
        }
    }

    impl ObjectImpl for Lender {}
    impl GstObjectImpl for Lender {}

    // SAFETY: `alloc` returns initialised memory of this allocator or null, `free` takes just those.
    unsafe impl AllocatorImpl for Lender {
        unsafe fn alloc(&self, size: usize, params: &gst::AllocationParams) -> *mut ffi::GstMemory {
            let align = params.align() | gst::Memory::default_alignment();
            let block = size
                .checked_add(params.prefix())
                .and_then(|size| size.checked_add(params.padding()))
                .and_then(|size| Layout::from_size_align(size, align + 1).ok())
                .and_then(|layout| Some((layout.size(), Block::take(&self.spares, layout)?)));
            let Some((maxsize, block)) = block else {
                return ptr::null_mut();
            };
            let extent = Extent {
                flags: ffi::GST_MEMORY_FLAG_NO_SHARE,
                maxsize,
                align,
                offset: params.prefix(),
                size,
            };
            // SAFETY: this object is the allocator and alive.
            unsafe { Memory::leak(Arc::new(block), self.obj().as_ptr().cast(), &extent) }
        }

        unsafe fn free(&self, memory: *mut ffi::GstMemory) {
            // SAFETY: GStreamer gives back what `leak` handed over, once.
            drop(unsafe { Box::from_raw(memory.cast::<Memory>()) });
        }
    }

    #[derive(Default)]
    pub struct LentPool;

    #[glib::object_subclass]
    impl ObjectSubclass for LentPool {
        const NAME: &'static str = "CrossdeskLentPool";
        type Type = super::LentPool;
        type ParentType = gst_video::VideoBufferPool;
    }

    impl ObjectImpl for LentPool {}
    impl GstObjectImpl for LentPool {}

    impl BufferPoolImpl for LentPool {
        fn options() -> &'static [&'static str] {
            &[
                "GstBufferPoolOptionVideoMeta",
                "GstBufferPoolOptionVideoAlignment",
            ]
        }

        /// Lets the buffer go for good: a view of its memory may be on show when the decoder is done with it.
        /// The memory finds its way back to the spares by itself.
        fn release_buffer(&self, mut buffer: gst::Buffer) {
            if let Some(buffer) = buffer.get_mut() {
                buffer.set_flags(gst::BufferFlags::TAG_MEMORY);
            }
            self.parent_release_buffer(buffer);
        }
    }
}

glib::wrapper! {
    /// Allocates memory whose copies are views.
    pub struct Lender(ObjectSubclass<imp::Lender>) @extends gst::Allocator, gst::Object;
}

glib::wrapper! {
    /// A pool of pictures that use such memory, when given a [`Lender`] in its configuration.
    pub struct LentPool(ObjectSubclass<imp::LentPool>) @extends gst_video::VideoBufferPool, gst::BufferPool, gst::Object;
}

// SAFETY: nothing of `GstVideoBufferPool` needs more than its parent's class and instance initialisation.
unsafe impl glib::subclass::types::IsSubclassable<imp::LentPool> for gst_video::VideoBufferPool {}

impl Default for Lender {
    fn default() -> Self {
        glib::Object::new()
    }
}

impl Default for LentPool {
    fn default() -> Self {
        glib::Object::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(memory: &gst::Memory) -> Vec<u8> {
        memory.map_readable().unwrap().to_vec()
    }

    #[test]
    fn a_copy_shows_the_same_bytes_outlives_the_original_and_cannot_be_written() {
        crate::gst::init().unwrap();
        let lender = Lender::default();
        let mut memory = lender.alloc(8, None).unwrap();
        memory
            .get_mut()
            .unwrap()
            .map_writable()
            .unwrap()
            .copy_from_slice(b"abcdefgh");
        let copy = memory.copy();
        let part = memory.copy_range(2..5);
        drop(memory);
        drop(lender);
        assert_eq!(bytes_of(&copy), b"abcdefgh");
        assert_eq!(bytes_of(&part), b"cde");
        assert_eq!(bytes_of(&part.copy_range(1..)), b"de");
        assert!(copy.into_mapped_memory_writable().is_err());
    }

    #[test]
    fn a_buffer_being_decoded_into_is_passed_on_without_a_copy() {
        crate::gst::init().unwrap();
        let lender = Lender::default();
        let mut buffer = gst::Buffer::new();
        buffer
            .get_mut()
            .unwrap()
            .append_memory(lender.alloc(64, None).unwrap());
        // As `avdec_h264` does: mapped for writing, with a second reference, while the picture goes out.
        let mut held = buffer.into_mapped_buffer_writable().unwrap();
        held[0] = 7;
        let out = held.buffer().copy();
        let shown = out.map_readable().unwrap();
        assert_eq!(shown.as_ptr(), held.as_ptr());
        assert_eq!(shown[0], 7);
    }

    #[test]
    fn a_block_is_used_again_only_when_nobody_sees_it() {
        crate::gst::init().unwrap();
        let lender = Lender::default();
        let first = lender.alloc(64, None).unwrap();
        let at = first.map_readable().unwrap().as_ptr();
        let view = first.copy();
        drop(first);
        let second = lender.alloc(64, None).unwrap();
        assert_ne!(second.map_readable().unwrap().as_ptr(), at);
        drop(view);
        let third = lender.alloc(64, None).unwrap();
        assert_eq!(third.map_readable().unwrap().as_ptr(), at);
    }

    #[test]
    fn a_pool_gives_padded_pictures_and_keeps_a_shown_one_untouched() {
        crate::gst::init().unwrap();
        let pool = LentPool::default();
        let info = gst_video::VideoInfo::builder(gst_video::VideoFormat::I420, 64, 48)
            .build()
            .unwrap();
        let mut config = pool.config();
        config.set_params(Some(&info.to_caps().unwrap()), info.size() as u32, 0, 0);
        config.set_allocator(Some(&Lender::default()), None);
        config.add_option("GstBufferPoolOptionVideoMeta");
        pool.set_config(config).unwrap();
        pool.set_active(true).unwrap();
        let mut buffer = pool.acquire_buffer(None).unwrap();
        assert!(buffer.meta::<gst_video::VideoMeta>().is_some());
        buffer.get_mut().unwrap().map_writable().unwrap().fill(9);
        let shown = buffer.peek_memory(0).copy();
        drop(buffer);
        let mut next = pool.acquire_buffer(None).unwrap();
        next.get_mut().unwrap().map_writable().unwrap().fill(1);
        assert!(bytes_of(&shown).iter().all(|byte| *byte == 9));
        drop(next);
        pool.set_active(false).unwrap();
    }
}
