//! The one worker that turns pictures into PNG files.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;

use bytes::Bytes;
use crossdesk_core::automation::{CaptureFailure, CaptureImage, CaptureJob, PictureInfo};
use crossdesk_pipelines::picture::Picture;
use crossdesk_pipelines::pixels::png::{PngEncoder, PngError, PngRequest};

use super::event::AgentEvent;

/// The session starts one capture at a time; one more place lets a cancelled one finish beside its successor.
const JOBS: usize = 2;

type Work = (CaptureJob, Picture);

/// Handle of the worker thread; dropping it ends the thread after the job at hand.
#[derive(Debug)]
pub struct CaptureWorker {
    jobs: SyncSender<Work>,
}

impl CaptureWorker {
    /// Starts the thread; every job is answered exactly once with [`AgentEvent::Captured`].
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(events: SyncSender<AgentEvent>) -> std::io::Result<Self> {
        let (jobs, inbox) = sync_channel(JOBS);
        thread::Builder::new()
            .name("png".into())
            .spawn(move || work(&inbox, &events))?;
        Ok(Self { jobs })
    }

    /// Queues a job; never blocks.
    ///
    /// # Errors
    /// When the worker has more to do than the session may ask for at once, or has ended.
    pub fn submit(&self, job: CaptureJob, picture: Picture) -> Result<(), CaptureFailure> {
        self.jobs.try_send((job, picture)).map_err(|error| match error {
            TrySendError::Full(_) | TrySendError::Disconnected(_) => CaptureFailure::Failed,
        })
    }
}

fn work(inbox: &Receiver<Work>, events: &SyncSender<AgentEvent>) {
    let mut encoder = PngEncoder::new();
    for (job, picture) in inbox {
        let result = encode(&mut encoder, &job, &picture);
        if events
            .send(AgentEvent::Captured { job: job.job, result })
            .is_err()
        {
            return;
        }
    }
}

fn encode(
    encoder: &mut PngEncoder,
    job: &CaptureJob,
    picture: &Picture,
) -> Result<CaptureImage, CaptureFailure> {
    let request = PngRequest {
        region: job.region,
        max_edge: job.max_edge,
        max_bytes: job.max_bytes,
    };
    let png = encoder.encode(picture, &request).map_err(|error| match error {
        PngError::OutsidePicture => CaptureFailure::RegionOutOfBounds,
        PngError::TooFewBytes => CaptureFailure::TooLarge,
        PngError::Map(_) | PngError::ShortPlanes => CaptureFailure::Failed,
    })?;
    Ok(CaptureImage {
        picture: picture_info(picture),
        source_rect: png.source_rect,
        image_size: png.image_size,
        png: Bytes::from(png.data),
    })
}

/// What the session may know of a picture.
pub fn picture_info(picture: &Picture) -> PictureInfo {
    PictureInfo {
        frame_id: u64::from(picture.sequence),
        size: picture.size,
        received: picture.received,
        decoded: picture.decoded,
        geometry_epoch: picture.geometry_epoch,
    }
}
